"""Known results that the simulator reproduces, each as a `Law` with its readings; the page is written from them."""
