"""JupyterLab in the pod: one port, a token, nothing left running that nobody uses."""

import os

c = get_config()  # noqa: F821 - Jupyter puts it there

# All interfaces of the pod: who reaches them, the network policy says.
c.ServerApp.ip = "0.0.0.0"
c.ServerApp.port = int(os.environ.get("SERVER_PORT", "8884"))
c.ServerApp.port_retries = 0  # another port would be one that no probe and no service knows
c.ServerApp.open_browser = False
c.ServerApp.allow_remote_access = True  # probes come with the pod's address as host
c.ServerApp.quit_button = False  # the server would only be started again
c.FileContentsManager.delete_to_trash = False  # a full volume would stay full

# A kernel holds GPU memory as long as it lives. Busy ones stay; an open tab alone saves none.
c.MappingKernelManager.cull_idle_timeout = int(os.environ.get("KERNEL_IDLE_MINUTES", "45")) * 60
c.MappingKernelManager.cull_interval = 60
c.MappingKernelManager.cull_connected = True
c.MappingKernelManager.cull_busy = False
c.TerminalManager.cull_inactive_timeout = int(os.environ.get("KERNEL_IDLE_MINUTES", "45")) * 60
c.TerminalManager.cull_interval = 60

# Never by itself: the StatefulSet would start it again at once, and the node would stay. The idle
# scaler releases the node.
c.ServerApp.shutdown_no_activity_timeout = 0
