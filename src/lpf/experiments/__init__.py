"""Studies: what is run on what, and what came out of it.

``lessons`` makes what is learned from and who is asked, a ``workbench`` learns one lesson and
answers its cells, ``judging`` measures the answers. ``studies`` and the ``evaluation`` of a file
ask for cells and show what came of them, with what the paper ``printed`` beside it.
"""
