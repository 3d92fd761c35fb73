"""What is recorded, and what is true: ending what died, and finding where the two differ.

Read it in this order: :mod:`records`, :mod:`settling` (an operation whose execution died), :mod:`judging` (one tenant's
rows against its stack), :mod:`repairing`, :mod:`reconciler` (the whole fleet), :mod:`control` (asking for it).
"""
