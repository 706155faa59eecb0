// Connections that the core server's messaging log tells of and its list of clients does not: devices that came while the
// directory did not answer. They stay without a name, without channels and unseen until they connect again.

export interface LoggedConnection {
  /** The core's own name of the connection: `tls:7`. */
  connection: string;
  callsign: string;
  /** What the device calls itself. */
  uid: string;
}

const BEGAN = / - Started TAK Server messaging /;
const IDENTIFIED = / - Set client for subscription: (\S+:\d+) to (.*) \((.*?)\)(?: source=\S*)?$/;
const REMOVED = / - Removed Subscription: (\S+:\d+)$/;

/**
 * Those that reported and did not end, oldest first, by the lines of `takserver-messaging.log` (releases 4.5 to 5.7 write the
 * same). Names are the devices' own words: trust only what the list of clients then says of `connection`.
 */
export function loggedConnections(lines: readonly string[]): LoggedConnection[] {
  const open = new Map<string, LoggedConnection>();
  for (const line of lines) {
    // A new process counts from 1 again.
    if (BEGAN.test(line)) open.clear();
    const removed = REMOVED.exec(line)?.[1];
    if (removed !== undefined) open.delete(removed);
    const [, connection, callsign = '', uid = ''] = IDENTIFIED.exec(line) ?? [];
    if (connection !== undefined) open.set(connection, { connection, callsign, uid });
  }
  return [...open.values()];
}
