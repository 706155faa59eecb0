// Serves /Marti/api/citrap: reports that devices write (CI-TRAP), each a zip with a report in XML.

import { randomUUID } from 'node:crypto';
import { XMLSerializer } from '@xmldom/xmldom';
import { strFromU8, strToU8, unzipSync, type Unzipped, zipSync } from 'fflate';
import { messageOf } from '@holdfast/kit/app-error';
import { readBody } from '@holdfast/kit/body';
import { limitPerCaller } from '@holdfast/kit/concurrency';
import { nameKey } from '@holdfast/kit/names';
import { contentDisposition, goodText, lastPart } from '../files/query-parameters.ts';
import { type GroupParts, sendingPlaces, visiblePlaces } from '../groups/own-groups.ts';
import { CoreFault, emptyAnswer, json, PageFault } from '../http/answers.ts';
import { type AdminContext, type AdminRoute, demanded, invalid, isAdmin, wholeNumber } from '../http/route.ts';
import { parsedXml } from '../http/xml-body.ts';
import { escapeXml } from '../model/wire-text.ts';
import {
  type Report,
  REPORT_LIMITS,
  type ReportContent,
  type ReportFacts,
  type ReportStore,
} from '../store/reports.ts';
import { reportFilter } from './citrap-search.ts';

export interface ReportOptions extends GroupParts {
  reports: ReportStore;
  now: () => Date;
}

const BASE = '/Marti/api/citrap';
const MAX_BODY_BYTES = 20 * 1024 * 1024;
const MAX_UNPACKED_BYTES = 64 * 1024 * 1024;
const MAX_FILES = 200;
const MAX_ID = 128;
/** Of one attribute. */
const MAX_TEXT = 2_000;
/** Each is in memory, with what it unpacks to. */
const MAX_AT_ONCE = { most: 2, maxPerOne: 1 };
const REPORT_NAME = 'TrapReport.xml';
const ATTRIBUTES = [
  'type',
  'title',
  'userCallsign',
  'userDescription',
  'dateTime',
  'dateTimeDescription',
  'location',
  'locationDescription',
  'eventScale',
  'importance',
  'status',
] as const satisfies readonly (keyof ReportFacts)[];

/** A report with its package. */
interface Given extends ReportContent {
  facts: ReportFacts;
}

export class ReportRoutes {
  readonly #options: ReportOptions;
  readonly #running = limitPerCaller(MAX_AT_ONCE);

  constructor(options: ReportOptions) {
    this.#options = options;
  }

  routes(): AdminRoute[] {
    return [
      { path: BASE, handlers: { GET: (c) => this.#search(c), POST: (c) => this.#create(c) } },
      {
        path: `${BASE}/:id`,
        handlers: { GET: (c) => this.#read(c), PUT: (c) => this.#update(c), DELETE: (c) => this.#remove(c) },
      },
      { path: `${BASE}/:id/attachment`, handlers: { POST: (c) => this.#attach(c) } },
    ];
  }

  async #search(c: AdminContext): Promise<Response> {
    const isFound = reportFilter(c);
    const most = wholeNumber(c, 'maxReportCount', REPORT_LIMITS.all, 0);
    const all = await this.#options.reports.list(await visiblePlaces(c.env.caller, this.#options));
    const found = all
      .map(({ facts }) => facts)
      .filter(isFound)
      .slice(0, most);
    return wantsXml(c) ? xmlAnswer(`<reports>${found.map(asElement).join('')}</reports>`) : json(found);
  }

  async #read(c: AdminContext): Promise<Response> {
    const { facts } = await this.#seen(c);
    const content = await this.#options.reports.content(facts.id);
    if (content === undefined) throw noReport(facts.id);
    if (wantsXml(c)) return xmlAnswer(content.xml);
    return new Response(content.data, {
      headers: {
        'content-type': 'application/zip',
        'content-disposition': contentDisposition(`${facts.id}.zip`),
        'x-content-type-options': 'nosniff',
      },
    });
  }

  /** One that has the id of a report of the same person replaces it. */
  async #create(c: AdminContext): Promise<Response> {
    demanded(c, 'clientUid');
    const { caller } = c.env;
    const places = await sendingPlaces(caller, [], this.#options);
    return this.#alone(c, async () => {
      const given = reportIn(await readPackage(c), undefined);
      const { id } = given.facts;
      const now = this.#options.now();
      const made = await this.#options.reports.add({ ...given, submitter: caller.username }, places, now);
      if (made === 'full') throw full();
      if (made === 'taken') {
        const known = await this.#options.reports.find(id, await visiblePlaces(caller, this.#options));
        if (known === undefined) throw new CoreFault('conflict', `There is another report ${id}.`);
        this.#requireOwn(c, known);
        await this.#replace(given);
      }
      return json({ id }, 201);
    });
  }

  /** The whole package, or the report in it alone. */
  async #update(c: AdminContext): Promise<Response> {
    const { facts } = await this.#own(c);
    return this.#alone(c, async () => {
      const isXml = /^(?:application|text)\/xml\b/i.test(c.req.header('content-type') ?? '');
      const body = await readPackage(c);
      const files = isXml ? await this.#filesOf(facts.id) : unpacked(body);
      const name = reportName(files) ?? REPORT_NAME;
      if (isXml) files[name] = body;
      await this.#replace(reportIn(zipSync(files), facts.id));
      return emptyAnswer();
    });
  }

  /** A file beside the report. */
  async #attach(c: AdminContext): Promise<Response> {
    const { facts } = await this.#own(c);
    const given = /filename="?([^";]+)"?/i.exec(c.req.header('content-disposition') ?? '')?.[1] ?? '';
    const name = goodText('filename', lastPart(given), MAX_ID);
    if (name === '' || name.endsWith('.xml') || name === '.' || name === '..')
      throw invalid('Content-Disposition must name a file that is no XML');
    return this.#alone(c, async () => {
      const data = await readPackage(c);
      const files = await this.#filesOf(facts.id);
      await this.#replace(reportIn(zipSync({ ...files, [name]: [data, { level: 0 }] }), facts.id));
      return emptyAnswer();
    });
  }

  async #remove(c: AdminContext): Promise<Response> {
    const { facts } = await this.#own(c);
    if (await this.#options.reports.remove(facts.id)) return emptyAnswer();
    throw noReport(facts.id);
  }

  async #filesOf(id: string): Promise<Unzipped> {
    const content = await this.#options.reports.content(id);
    if (content === undefined) throw noReport(id);
    return unpacked(content.data);
  }

  async #replace({ facts, xml, data }: Given): Promise<void> {
    if (data.length > MAX_BODY_BYTES) throw tooLarge();
    const done = await this.#options.reports.replace(facts, { xml, data }, this.#options.now());
    if (done === 'full') throw full();
    if (done === 'gone') throw noReport(facts.id);
  }

  /** What the caller does not see is not there. */
  async #seen(c: AdminContext): Promise<Report> {
    demanded(c, 'clientUid');
    const id = goodText('id', c.req.param('id') ?? '', MAX_ID);
    const found = await this.#options.reports.find(id, await visiblePlaces(c.env.caller, this.#options));
    if (found === undefined) throw noReport(id);
    return found;
  }

  async #own(c: AdminContext): Promise<Report> {
    const found = await this.#seen(c);
    this.#requireOwn(c, found);
    return found;
  }

  #requireOwn(c: AdminContext, { submitter }: Report): void {
    const { caller } = c.env;
    if (isAdmin(caller) || nameKey(submitter) === nameKey(caller.username)) return;
    throw new CoreFault('forbidden', 'Only the person who sent this report and administrators may do this.');
  }

  async #alone(c: AdminContext, work: () => Promise<Response>): Promise<Response> {
    const leave = this.#running.enter(c.env.caller.username);
    if (leave === undefined)
      throw new PageFault(503, 'Too many reports at once. Try again in a moment.', { headers: { 'retry-after': '5' } });
    try {
      return await work();
    } finally {
      leave();
    }
  }
}

function noReport(id: string): CoreFault {
  return new CoreFault('not found', `Report ${id} not found.`);
}

function full(): CoreFault {
  const { all, ofOne, bytes } = REPORT_LIMITS;
  return new CoreFault(
    'conflict',
    `There can be at most ${all} reports, ${ofOne} of one person, and ${bytes / 2 ** 20} MB together. Delete old ones.`,
  );
}

function tooLarge(): PageFault {
  return new PageFault(413, `A report may have ${MAX_BODY_BYTES / 2 ** 20} MB at most.`);
}

function readPackage(c: AdminContext): Promise<Uint8Array<ArrayBuffer>> {
  return readBody(c.req.raw.body, MAX_BODY_BYTES, tooLarge);
}

function unpacked(data: Uint8Array): Unzipped {
  let bytes = 0;
  let files = 0;
  try {
    return unzipSync(data, {
      filter: ({ name, originalSize }) => {
        if ((bytes += originalSize) > MAX_UNPACKED_BYTES) throw new Error('it unpacks to too much');
        if (++files > MAX_FILES) throw new Error(`it has more than ${MAX_FILES} files`);
        return !name.endsWith('/');
      },
    });
  } catch (cause) {
    throw invalid(`the body is no readable zip: ${messageOf(cause)}`);
  }
}

function reportName(files: Unzipped): string | undefined {
  return Object.keys(files).find(
    (name) => name.endsWith('.xml') && strFromU8(files[name] ?? new Uint8Array()).includes('<report'),
  );
}

/** With its id in the XML. `id`: which it must have; undefined: its own, or a new one. */
function reportIn(data: Uint8Array<ArrayBuffer>, id: string | undefined): Given {
  const files = unpacked(data);
  const name = reportName(files);
  if (name === undefined) throw invalid('the package has no report in XML');
  try {
    const document = parsedXml(strFromU8(files[name] ?? new Uint8Array()).replace(/^\uFEFF/, ''));
    const root = document.documentElement;
    if (root?.localName !== 'report') throw new Error('it is no report');
    const attribute = (key: string): string | null => {
      const text = root.getAttribute(key);
      return text === null ? null : goodText(key, text.replaceAll(/\s+/g, ' '), MAX_TEXT);
    };
    const own = goodText('id', root.getAttribute('id') ?? '', MAX_ID);
    if (id !== undefined && own !== '' && own !== id) throw new Error(`its id is ${own}, not ${id}`);
    root.setAttribute('id', id ?? (own || randomUUID()));
    const facts = Object.fromEntries(ATTRIBUTES.map((key) => [key, attribute(key)])) as Omit<ReportFacts, 'id'>;
    const xml = new XMLSerializer().serializeToString(document);
    const packed = zipSync({ ...files, [name]: strToU8(xml) });
    return { facts: { id: root.getAttribute('id') ?? '', ...facts }, xml, data: packed };
  } catch (cause) {
    throw cause instanceof CoreFault ? cause : invalid(`${name} can't be read: ${messageOf(cause)}`);
  }
}

function wantsXml(c: AdminContext): boolean {
  const accept = (c.req.header('accept') ?? '').toLowerCase();
  return accept.includes('application/xml') && !accept.includes('*/*') && !accept.includes('application/json');
}

function xmlAnswer(xml: string): Response {
  return new Response(xml, { headers: { 'content-type': 'application/xml', 'x-content-type-options': 'nosniff' } });
}

function asElement(facts: ReportFacts): string {
  const given = Object.entries(facts).filter((pair): pair is [string, string] => pair[1] !== null);
  return `<report${given.map(([name, value]) => ` ${name}="${escapeXml(value)}"`).join('')}/>`;
}
