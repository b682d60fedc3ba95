"""Virtual phones that speak the adb transport protocol to a real adb server."""
