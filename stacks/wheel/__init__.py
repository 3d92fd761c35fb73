"""The wheel that operators, platforms and other teams install: one package, ``berth``, and the command ``berth``.

1. :mod:`stacks.wheel.building`  makes it from the folders that pyproject.toml names
2. :mod:`stacks.wheel.berth`     the names that others import: ``berth`` and ``berth.cdk``
"""
