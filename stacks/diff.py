"""``python -m stacks.diff``: what ``make deploy`` would change in the deployed stacks. ``make diff`` runs it.

It is ``cdk diff``, with the same arguments and settings as ``make deploy``. CloudFormation creates a change set, which
the CDK deletes again. Only the change set says what would be replaced: without it, the CDK guesses from the template.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from stacks.deploy import run_cdk

_METHOD = ("--method", "change-set")


def arguments_of(given: Sequence[str]) -> list[str]:
    has_method = any(each.partition("=")[0] in ("-m", "--method", "--change-set", "--no-change-set") for each in given)
    return [*(() if has_method else _METHOD), *given]


def main() -> None:
    code = run_cdk("diff", arguments_of(sys.argv[1:]))
    if code == 0:
        sys.stdout.write("Nothing was deployed. `make deploy` with the same CDK_ARGS deploys this.\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
