// Runs the feeds of the console in the flow engine: one tab for each, made of feed-flow.json.
// Management gives feeds.json and the certificates; what has become of each goes back in a file.

'use strict';

const { createHash } = require('node:crypto');
const { readFileSync, renameSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { StringDecoder } = require('node:string_decoder');
const { Allowance } = require('./feed-allowance.js');
const { eventsOf } = require('./feed-events.js');

const LOOK_EVERY_MS = 5_000;
const REPORT_EVERY_MS = 30_000;
const READ_WITHIN_MS = 15_000;
const MAX_ANSWER_BYTES = 8_000_000;
/** Of a stream of CoT, while the end of an event is missing. */
const MAX_REST_BYTES = 256_000;
const PREFIX = 'holdfast-feed-';
const TEMPLATE = join(__dirname, 'feed-flow.json');

class Feeds {
  #directory;
  #stateFile;
  /** By name: `{ feed, allowance, state, isReading, rest, decoder }`. */
  #running = new Map();
  /** By name, of feeds that do not run now: as in the report. A day's budget outlives them. */
  #former;
  #reported = { text: '', ms: 0 };

  /** `directory`: in which management puts its files. */
  constructor(directory) {
    this.#directory = directory;
    this.#stateFile = join(directory, 'state', 'feeds.json');
  }

  /**
   * From what management has given: starts, changes and ends feeds. False if it has never given any.
   */
  load() {
    const given = jsonIn(join(this.#directory, 'feeds.json'));
    if (given === undefined) return false;
    const { feeds } = given;
    this.#former ??= new Map(Object.entries(jsonIn(this.#stateFile)?.feeds ?? {}));
    const active = new Map(feeds.filter((feed) => feed.active).map((feed) => [feed.name, feed]));
    for (const [name, running] of this.#running)
      if (active.get(name)?.kind !== running.feed.kind) {
        this.#former.set(name, reportOf(running));
        this.#running.delete(name);
      }
    for (const [name, feed] of active) {
      const running = this.#running.get(name);
      if (running === undefined) this.#running.set(name, started(feed, this.#former.get(name)));
      else running.feed = feed;
    }
    return true;
  }

  /** Every node of every feed. One whose certificate is missing waits. */
  nodes() {
    return [...this.#running.values()].flatMap(({ feed }) => {
      const file = join(this.#directory, `svc_feed_${feed.name}.pem`);
      const certificate = textIn(file);
      return certificate === '' ? [] : nodesOf(feed, { file, certificate });
    });
  }

  /**
   * For the node "read": what the source answers. Undefined when it fails, and while the request
   * before still runs.
   */
  async read(name) {
    const running = this.#running.get(name);
    if (running === undefined || running.isReading) return undefined;
    running.isReading = true;
    try {
      return await this.#noting(name, () => fetchText(running.feed));
    } finally {
      running.isReading = false;
    }
  }

  /** For the node "to CoT". A part of a stream, too. */
  async offer(name, answer) {
    const running = this.#running.get(name);
    if (running === undefined) return;
    await this.#noting(name, () => {
      const now = Date.now();
      const events = eventsOf(running.feed, whole(running, answer), now);
      running.allowance.offer(events);
      running.state.read_at = new Date(now).toISOString();
      running.state.items = events.length;
    });
  }

  /** For the node "rate and budget": the text of the events that may go now. */
  take(name, isConnected) {
    const running = this.#running.get(name);
    if (running === undefined) return '';
    const { state, allowance, feed } = running;
    state.connected = isConnected;
    if (!isConnected) return '';
    const now = Date.now();
    const { day } = allowance.spent;
    const events = allowance.take(feed, now);
    if (allowance.spent.day !== day) state.sent_today = 0;
    state.sent_today += events.length;
    if (events.length > 0) state.sent_at = new Date(now).toISOString();
    return events.join('');
  }

  /** Writes for management what has become of each: when it changes, and every half a minute. */
  report(now = Date.now()) {
    if (this.#running.size === 0 && this.#reported.text === '') return;
    const feeds = Object.fromEntries([...this.#running].map(([name, running]) => [name, reportOf(running)]));
    const text = JSON.stringify(feeds);
    if (text === this.#reported.text && now - this.#reported.ms < REPORT_EVERY_MS) return;
    writeFileSync(`${this.#stateFile}.new`, JSON.stringify({ at: new Date(now).toISOString(), feeds }), {
      mode: 0o640,
    });
    renameSync(`${this.#stateFile}.new`, this.#stateFile);
    this.#reported = { text, ms: now };
  }

  async #noting(name, work) {
    const { state } = this.#running.get(name);
    try {
      const result = await work();
      state.error = null;
      return result;
    } catch (error) {
      state.error = (error.cause?.code ? `${error.message} (${error.cause.code})` : error.message).slice(0, 300);
      return undefined;
    }
  }
}

function reportOf({ state, allowance }) {
  const { day, bytes } = allowance.spent;
  return { ...state, day, bytes_today: bytes, refused_today: allowance.refused };
}

/** `former`: its report before it was switched off, or the engine started again. */
function started(feed, former = {}) {
  const { day = '', bytes_today: bytes = 0, refused_today: refused = 0, sent_today = 0, sent_at = null } = former;
  const state = { connected: false, read_at: null, items: 0, sent_at, sent_today, error: null };
  return {
    feed,
    allowance: new Allowance({ day, bytes, refused }),
    state,
    isReading: false,
    rest: '',
    decoder: new StringDecoder('utf8'),
  };
}

/** Of a stream, what ends with an event; the rest stays for the next part. */
function whole(running, answer) {
  if (!isStream(running.feed)) return answer;
  const text = running.rest + running.decoder.write(answer);
  const end = text.lastIndexOf('</event>') + '</event>'.length;
  const isNone = end < '</event>'.length;
  running.rest = isNone ? text : text.slice(end);
  if (running.rest.length > MAX_REST_BYTES) {
    running.rest = '';
    throw new Error('the source sends no end of an event');
  }
  return isNone ? '' : text.slice(0, end);
}

const isStream = ({ url }) => url.startsWith('tcp:');

/** No redirect is followed: it would lead elsewhere than the administrator said. */
async function fetchText({ url, header }) {
  const response = await fetch(url, {
    headers: {
      'User-Agent': 'Holdfast',
      Accept: 'application/json, */*',
      ...(header && { [header.name]: header.value }),
    },
    redirect: 'manual',
    signal: AbortSignal.timeout(READ_WITHIN_MS),
  });
  if (!response.ok) {
    await response.body?.cancel();
    const isRedirect = response.status >= 300 && response.status < 400;
    throw new Error(`the source answers ${response.status}${isRedirect ? ', a redirect, which is not followed' : ''}`);
  }
  const chunks = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) throw new Error(`the answer is larger than ${MAX_ANSWER_BYTES / 1e6} MB`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** The tab of a feed. Another certificate makes another node, so that it connects again. */
function nodesOf(feed, { file, certificate }) {
  const { hostname, port } = new URL(feed.url);
  const values = {
    NAME: feed.name,
    CERTIFICATE: file,
    VERSION: createHash('sha256').update(certificate).digest('hex').slice(0, 8),
    INTERVAL: String(feed.interval_s),
    HOST: hostname.replaceAll(/[[\]]/g, ''),
    PORT: port,
  };
  const text = readFileSync(TEMPLATE, 'utf8').replaceAll(/@([A-Z]+)@/g, (_, name) =>
    JSON.stringify(values[name]).slice(1, -1),
  );
  const unused = isStream(feed) ? ['tick', 'read'] : ['source'];
  return JSON.parse(text).filter(({ id }) => !unused.some((name) => id === `${PREFIX}${feed.name}-${name}`));
}

const isOfFeeds = ({ id, z = '' }) => id.startsWith(PREFIX) || z.startsWith(PREFIX);
const textById = (nodes) => JSON.stringify(nodes.toSorted((a, b) => (a.id < b.id ? -1 : 1)));

/** Puts the tabs of the feeds into the engine; every other node stays as it is. */
async function deploy(feeds, url, headers) {
  const wanted = feeds.nodes();
  const { flows, rev } = await (await fetch(url, { headers })).json();
  if (textById(flows.filter(isOfFeeds)) === textById(wanted)) return false;
  const answer = await fetch(url, {
    method: 'POST',
    headers: { ...headers, 'Content-Type': 'application/json', 'Node-RED-Deployment-Type': 'flows' },
    body: JSON.stringify({ flows: [...flows.filter((node) => !isOfFeeds(node)), ...wanted], rev }),
  });
  // Somebody else has deployed meanwhile: at the next look.
  if (!answer.ok && answer.status !== 409)
    throw new Error(`the engine answers ${answer.status} ${await answer.text()}`);
  return answer.ok;
}

/**
 * Looks every few seconds, until the process ends. Returns what the nodes of the feeds call.
 * `url`, `headers`: the flows of the engine. `say(level, message)` logs.
 */
function runFeeds({ directory, url, headers, say }) {
  const feeds = new Feeds(directory);
  let isBusy = false;
  let known;
  setInterval(async () => {
    if (isBusy) return;
    isBusy = true;
    try {
      if (!feeds.load()) return;
      if (await deploy(feeds, url, headers)) say('info', 'the feeds have changed, and were deployed');
      feeds.report();
      known = undefined;
    } catch (error) {
      if (error.message !== known) say('warn', `feeds: ${(known = error.message)}`);
    } finally {
      isBusy = false;
    }
  }, LOOK_EVERY_MS).unref();
  return {
    read: (name) => feeds.read(name),
    offer: (name, answer) => feeds.offer(name, answer),
    take: (name, isConnected) => feeds.take(name, isConnected),
  };
}

function textIn(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** Undefined for a file that is missing; throws for one that is broken. */
function jsonIn(file) {
  const text = textIn(file);
  return text === '' ? undefined : JSON.parse(text);
}

module.exports = { Feeds, runFeeds };
