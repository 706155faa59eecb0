// What the load generator of the CoT benchmark is told and what it tells, and the events that it
// sends.

/** PEM files; every connection shows the same certificate, with a uid of its own. */
export interface CotFiles {
  ca: string;
  certificate: string;
  key: string;
}

/**
 * Connections, of which the first `publishing` send events. All of them receive, but never their
 * own.
 */
export interface CotShape {
  connections: number;
  publishing: number;
}

export interface CotOrder extends CotFiles, CotShape {
  port: number;
  /** The server, whose CPU time and memory are read. */
  pid: number;
  /**
   * More nodes of the server: connections go round all of them. With `isApart` those that publish
   * are on the first, all others on the rest.
   */
  others?: { port: number; pid: number }[];
  isApart?: boolean;
  work: Flood | Steady;
}

/**
 * As fast as the server and the readers take it: so many events are on their way at once, never
 * more.
 */
export interface Flood {
  kind: 'flood';
  window: number;
  /** Ends after this time, or after so many events. */
  forMs?: number;
  events?: number;
}

/** So many events a second in all, each with the time when it was sent. */
export interface Steady {
  kind: 'steady';
  perSecond: number;
  forMs: number;
  /** The last connection reads nothing from then on; latencies are those of the others. */
  stallAfterMs?: number;
  /** Bytes of text added to each event. */
  padding?: number;
  /** Each publisher sends one event before anything is measured: the server knows it then. */
  isWarm?: boolean;
}

export interface CotResult {
  sent: number;
  /** What the receivers have counted; every event goes to everybody but its sender. */
  delivered: number;
  expected: number;
  /** Of the server, until the readers had everything; and all it had used then. */
  cpuSeconds: number;
  cpuAtEnd: number;
  /** Milliseconds since 1970, when the first event was sent. */
  begunAtMs: number;
  seconds: number;
  /**
   * Resident memory of the server, MB: with all connections open and nothing sent; the most until
   * one stopped reading; the most.
   */
  idleMb: number;
  quietMb: number;
  maxMb: number;
  /** Connections of readers that ended before the work did. */
  ended: number;
  /** Milliseconds; of steady work only. `stalled`: since one stopped reading. */
  latency?: Latency;
  stalled?: Latency;
}

export interface Latency {
  p50: number;
  p99: number;
}

/** Stands once in an event, in front of its number, and nowhere else in what a server sends. */
export const MARKER = 0x7e;
/** Digits of the number: of the event, or the microseconds of its sending. */
export const NUMBER_DIGITS = 16;

/** The position of a device, about 450 bytes; where its number begins. */
export function preparedEvent(publisher: number, padding = 0): { event: Buffer; numberAt: number } {
  const name = `BENCH-${String(publisher).padStart(4, '0')}`;
  const begun = new Date();
  const stale = new Date(begun.getTime() + 3_600_000);
  const event = Buffer.from(
    `<event version="2.0" uid="${name}" type="a-f-G-U-C" how="m-g" time="${begun.toISOString()}"` +
      ` start="${begun.toISOString()}" stale="${stale.toISOString()}">` +
      `<point lat="52.5163" lon="13.3777" hae="34.5" ce="4.8" le="9999999.0"/><detail>` +
      `<contact callsign="${name}" endpoint="*:-1:stcp"/><__group name="Cyan" role="Team Member"/>` +
      `<status battery="88"/><track course="271.5" speed="1.4"/>` +
      `<remarks>~${'0'.repeat(NUMBER_DIGITS)}${'x'.repeat(padding)}</remarks></detail></event>`,
  );
  return { event, numberAt: event.indexOf(MARKER) + 1 };
}

/** Writes the number in place. */
export function writeNumber(event: Buffer, at: number, value: number): void {
  event.write(String(value).padStart(NUMBER_DIGITS, '0'), at, NUMBER_DIGITS, 'latin1');
}
