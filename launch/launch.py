"""What `import launch` finds when a script of this folder is run: the package `launch`, from any working folder.

Python puts a script's own folder first on its path, so that `launch` is this file there; with the folder as its `__path__` it is
the package. Imported in any other way (`python -m launch.ask`, tests), `launch/__init__.py` is.
"""

from pathlib import Path

__path__ = [str(Path(__file__).resolve().parent)]
