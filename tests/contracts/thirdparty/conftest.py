"""The package in `toybox` is a third-party plugin: its tests run in a separate environment
(`test_toybox_plugin.py`)."""

collect_ignore = ["toybox"]
