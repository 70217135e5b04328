"""The data: where each set comes from, how it is read, split and scaled.

Files are searched in the folder that is given, then in the cache folder (the environment variable ``PRUNUS_DATA``, or
``~/.cache/prunus``), then at their public source.
"""
