"""``python -m stacks.releases``: write the tenant template of the version in version.txt."""

from __future__ import annotations

import argparse
import sys

from orchestrator.common.errors import BerthError
from orchestrator.common.own_versions import template_version
from stacks.project import ROOT
from stacks.releases.committed import write_release
from stacks.tenants.template import tenant_template


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m stacks.releases", description=__doc__)
    parser.add_argument("--redo", action="store_true", help="replace the file of a release that was never published")
    version, redo = template_version(), parser.parse_args().redo
    try:
        file = write_release(version, tenant_template(version), redo=redo)
    except BerthError as refused:
        sys.exit(str(refused))
    sys.stdout.write(f"{file.relative_to(ROOT)} holds the tenant template of version {version}.\n")


if __name__ == "__main__":
    main()
