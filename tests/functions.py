"""The functions in the process of a test: loaded anew, because they read their settings as they are loaded."""

from __future__ import annotations

import logging
import sys


def forget_functions() -> None:
    """Have the functions loaded anew at their next import, with a logger that reads its level anew."""
    observing = sys.modules.get("lambdas.observing")
    if observing is not None:
        # Powertools leaves a logger of the same name as it is.
        logging.root.manager.loggerDict.pop(observing.logger.name, None)
    for name in [name for name in sys.modules if name == "lambdas" or name.startswith("lambdas.")]:
        del sys.modules[name]
