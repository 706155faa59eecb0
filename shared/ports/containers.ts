// The containers of this machine as their runtime sees them, read only. A stack without a runtime has no such port.

export interface ContainerMount {
  /** Inside the container. */
  destination: string;
  /** The runtime's own word: volume, bind, tmpfs. */
  type: string;
  /** Of a volume. */
  name?: string;
}

export interface Container {
  name: string;
  image: string;
  /** The runtime's own word: running, exited, restarting, paused, created, removing or dead. */
  state: string;
  /** Of its health check; undefined when it has none. */
  health: 'healthy' | 'unhealthy' | 'starting' | undefined;
  /** Of a container that has ended. */
  exit_code: number | undefined;
  /** True when the runtime should keep it running (restart policy `always` or `unless-stopped`). */
  kept_running: boolean;
  /** True when the kernel ended it for using too much memory. */
  out_of_memory: boolean;
  /** How often the runtime has restarted it. */
  restarts: number;
  mounts: ContainerMount[];
  /** Every name and address under which other containers may meet it. */
  hosts: string[];
}

export interface Containers {
  /**
   * Every container of the stack, running or not, by name. Throws an AppError (`unavailable`, `upstream`) when the runtime does not answer
   * or answers wrongly.
   */
  list(): Promise<Container[]>;
}
