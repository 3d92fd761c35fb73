"""The console in a real browser. ``make install`` brings the browser; BERTH_BROWSER names another one."""
