// CoT events out of what comes on a stream: `<event` to `</event>`, whatever stands between them. Nothing of it is believed;
// only the type and the uid are looked at, and only the start of an event is kept.

export interface ArrivingEvent {
  type: string;
  uid: string;
}

export interface ArrivingEvents {
  /** The events that end in this piece. Throws when one gets too long. */
  read(text: string): ArrivingEvent[];
}

const START = '<event';
const END = '</event>';
/** As the core has it. */
const LONGEST = 8 * 1024 * 1024;
const LONGEST_START = 16 * 1024;
const ATTRIBUTE = /\s+([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/y;
const BLANK_OR_END = /[\s/>]/;

export function arrivingEvents(longest = LONGEST): ArrivingEvents {
  /** The beginning of the event that is coming; undefined between events. */
  let begun: string | undefined;
  let length = 0;
  /** Too little of something to know what it is. */
  let rest = '';

  function append(text: string): string {
    length += text.length;
    if (length > longest) throw new Error(`an event of more than ${longest} characters`);
    begun = `${begun ?? ''}${text.slice(0, LONGEST_START - (begun?.length ?? 0))}`;
    return begun;
  }

  function toStart(): boolean {
    const at = startIn(rest);
    if (at === undefined) {
      rest = half(rest);
      return false;
    }
    rest = rest.slice(at);
    begun = '';
    length = 0;
    return true;
  }

  function toEnd(): ArrivingEvent | undefined {
    const at = rest.indexOf(END);
    const upTo = at < 0 ? Math.max(0, rest.length - END.length + 1) : at;
    const event = append(rest.slice(0, upTo));
    rest = rest.slice(at < 0 ? upTo : at + END.length);
    if (at < 0) return undefined;
    begun = undefined;
    return readStart(event);
  }

  return {
    read(text) {
      rest += text;
      const events: ArrivingEvent[] = [];
      while (begun !== undefined || toStart()) {
        const event = toEnd();
        if (event === undefined) break;
        events.push(event);
      }
      return events;
    },
  };
}

function startIn(text: string): number | undefined {
  for (let at = text.indexOf(START); at >= 0; at = text.indexOf(START, at + 1))
    if (BLANK_OR_END.test(text[at + START.length] ?? '')) return at;
  return undefined;
}

/** What may become a start when more comes. */
function half(text: string): string {
  const at = text.lastIndexOf('<');
  return at >= 0 && START.startsWith(text.slice(at)) ? text.slice(at) : '';
}

function readStart(event: string): ArrivingEvent {
  const attributes = new Map<string, string>();
  ATTRIBUTE.lastIndex = START.length;
  for (let found = ATTRIBUTE.exec(event); found !== null; found = ATTRIBUTE.exec(event))
    attributes.set(found[1] ?? '', found[2] ?? found[3] ?? '');
  return { type: attributes.get('type') ?? '', uid: attributes.get('uid') ?? '' };
}
