"""What goes to the processes of devices. Here there is one process, and nothing goes anywhere."""

DeviceList = tuple  # how devices are listed
