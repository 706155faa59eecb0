// What ends a connection of the stream.

/** Ends the connection that it came by, and nothing else. The message is for the log: no bytes of the client in it. */
export class StreamFault extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'StreamFault';
  }
}
