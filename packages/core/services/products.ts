// Serves /update to ATAK: the list of apps and plugins (product.infz), and their packages.
// Administrators manage them at /Marti/api/update/products.

import { Readable } from 'node:stream';
import { strToU8, zipSync } from 'fflate';
import { limitPerCaller } from '@holdfast/kit/concurrency';
import { byteRange } from '../files/content-routes.ts';
import { contentDisposition, goodText, request } from '../files/query-parameters.ts';
import type { Spool } from '../files/spool.ts';
import { isForm, readForm, readRaw } from '../files/upload-routes.ts';
import { CoreFault, emptyAnswer, PageFault, wrapped } from '../http/answers.ts';
import type { AdminContext, AdminRoute } from '../http/route.ts';
import { type Product, PRODUCT_LIMITS, type ProductStore } from '../store/products.ts';
import { readApk } from './apk.ts';

export interface ProductOptions {
  /** In every wrapped answer: `readNodeId`. */
  nodeId: string;
  products: ProductStore;
  spool: Spool;
  now: () => Date;
}

const UPDATE = '/update';
const PRODUCTS = '/Marti/api/update/products';
const TYPE = 'Product';
const INDEX = 'product.inf';
const MAX_UPLOADS = { most: 2, maxPerOne: 1 };
const MAX_DOWNLOADS = { most: 60, maxPerOne: 4 };
const MAX_NAME = 100;
const ICON_NAME = 'icon.png';
/** Each product must have one: a gray point. */
const ICON = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==',
  'base64',
);
/** Without an age, so that the same list is the same bytes. */
const MODIFIED = { mtime: new Date(1980, 0, 1) };

export class ProductRoutes {
  readonly #options: ProductOptions;
  readonly #uploads = limitPerCaller(MAX_UPLOADS);
  readonly #downloads = limitPerCaller(MAX_DOWNLOADS);

  constructor(options: ProductOptions) {
    this.#options = options;
  }

  routes(): AdminRoute[] {
    return [
      { path: `${UPDATE}/product.infz`, handlers: { GET: () => this.#archive() } },
      { path: `${UPDATE}/${INDEX}`, handlers: { GET: () => this.#index() } },
      { path: `${UPDATE}/:file`, handlers: { GET: (c) => this.#package(c) } },
      { path: PRODUCTS, handlers: { GET: () => this.#list(), POST: (c) => this.#add(c) } },
      { path: `${PRODUCTS}/:hash`, handlers: { DELETE: (c) => this.#remove(c) } },
    ];
  }

  async #list(): Promise<Response> {
    return wrapped(TYPE, await this.#options.products.list(), this.#options.nodeId);
  }

  async #archive(): Promise<Response> {
    const index = strToU8(indexOf(await this.#options.products.list()));
    const bytes = zipSync({ [INDEX]: index, [ICON_NAME]: ICON }, MODIFIED);
    return new Response(bytes, {
      headers: { 'content-type': 'application/zip', 'content-length': String(bytes.length) },
    });
  }

  async #index(): Promise<Response> {
    const text = indexOf(await this.#options.products.list());
    return new Response(text, { headers: { 'content-type': 'text/plain;charset=utf-8' } });
  }

  async #package(c: AdminContext): Promise<Response> {
    const [, hash = ''] = /^([0-9a-f]{64})\.apk$/.exec(c.req.param('file') ?? '') ?? [];
    const product = await this.#options.products.find(hash);
    if (product === undefined) throw new CoreFault('not found', 'There is no such package.');
    const range = byteRange(c.req.header('range'), product.sizeBytes);
    if (range === 'unsatisfiable')
      throw new PageFault(416, 'The requested range is outside the file.', {
        headers: { 'content-range': `bytes */${product.sizeBytes}` },
      });
    const { from, length } = range ?? { from: 0, length: product.sizeBytes };
    const headers: Record<string, string> = {
      'content-type': 'application/vnd.android.package-archive',
      'content-length': String(length),
      'content-disposition': contentDisposition(`${product.packageName}.apk`),
      'x-content-type-options': 'nosniff',
      'accept-ranges': 'bytes',
      etag: `"${hash}"`,
    };
    if (range !== undefined) headers['content-range'] = `bytes ${from}-${from + length - 1}/${product.sizeBytes}`;
    const body = c.req.method === 'HEAD' ? null : this.#bytesOf(c, hash, from, length);
    return new Response(body, { status: range === undefined ? 200 : 206, headers });
  }

  #bytesOf(c: AdminContext, hash: string, from: number, length: number): ReadableStream {
    const leave = this.#downloads.enter(c.env.caller.username);
    if (leave === undefined) throw tooMany();
    const source = Readable.from(this.#options.products.read(hash, from, length), { objectMode: false });
    source.once('close', leave);
    c.req.raw.signal.addEventListener('abort', () => source.destroy(), { once: true });
    return Readable.toWeb(source) as ReadableStream;
  }

  /** The file as a form or as the body; `name` says what people call it. */
  async #add(c: AdminContext): Promise<Response> {
    const name = request(c, 'name', MAX_NAME);
    const { username } = c.env.caller;
    const { spool, products, nodeId, now } = this.#options;
    const leave = this.#uploads.enter(username);
    if (leave === undefined) throw tooMany();
    try {
      await spool.demandRoom(Number(c.req.header('content-length') ?? 0));
      const contentType = c.req.header('content-type') ?? '';
      const { file } = await (isForm(contentType) ? readForm : readRaw)({ contentType, body: c.req.raw.body }, spool);
      try {
        const facts = await readApk(file.path);
        const { hash, sizeBytes } = file;
        const called = goodText('name', name ?? facts.label ?? facts.packageName, MAX_NAME);
        const product: Product = {
          ...facts,
          hash,
          sizeBytes,
          name: called,
          submitter: username,
          added: now().toISOString(),
        };
        if ((await products.add(product, file.path)) === 'added') return wrapped(TYPE, product, nodeId);
        throw new CoreFault(
          'conflict',
          `There can be ${PRODUCT_LIMITS.products} packages with ${PRODUCT_LIMITS.bytes / 1024 ** 3} GB. Delete old ones.`,
        );
      } finally {
        await file.remove();
      }
    } finally {
      leave();
    }
  }

  async #remove(c: AdminContext): Promise<Response> {
    if (await this.#options.products.remove(c.req.param('hash') ?? '')) return emptyAnswer();
    throw new CoreFault('not found', 'There is no such package.');
  }
}

function tooMany(): PageFault {
  return new PageFault(503, 'Too many packages at once. Try again in a moment.', { headers: { 'retry-after': '10' } });
}

/** One line for each, in the columns that ATAK reads. */
function indexOf(products: readonly Product[]): string {
  const lines = products.map((product) => {
    const { packageName, pluginApi, revision, hash, minSdk, sizeBytes } = product;
    const kind = pluginApi === undefined ? 'app' : 'plugin';
    const columns = [
      'Android',
      kind,
      packageName,
      product.name.replaceAll(',', ' '),
      product.version,
      revision,
      `${hash}.apk`,
      ICON_NAME,
      product.description ?? product.name.replaceAll(',', ' '),
      hash,
      minSdk,
      pluginApi ?? '',
      sizeBytes,
    ];
    return columns.join(',');
  });
  return [`#platform,type,package,name,version,revision,apk,icon,description,hash,os,tak,size`, ...lines, ''].join(
    '\n',
  );
}
