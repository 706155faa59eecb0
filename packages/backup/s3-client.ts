// Sends requests to S3-compatible storage with time limits, and explains its failures.

import { Readable } from 'node:stream';
import { S3mini } from 's3mini';
import { AppError, codeOf, messageOf, StackError } from '@holdfast/kit/app-error';
import type { Secret } from '@holdfast/kit/secret';
import { HOUR_MS } from '@holdfast/kit/time';

export interface S3Storage {
  bucket: string;
  /** Path inside of the bucket; empty: its root. */
  prefix: string;
  /** `https://s3.example.org`; undefined: AWS in this region. */
  url: string | undefined;
  region: string;
  accessKey: Secret;
  secretKey: Secret;
}

export interface S3Limits {
  connectMs: number;
  /** Without a byte in either direction. */
  stallMs: number;
  /** Of one request whose connection gets lost. */
  tries: number;
  /** Age from which an unfinished upload was left by a killed backup. */
  staleUploadMs: number;
}

/** No other backup of this stack is under way for 6 hours: one runs at a time. */
export const DEFAULT_LIMITS: S3Limits = { connectMs: 10_000, stallMs: 30_000, tries: 4, staleUploadMs: 6 * HOUR_MS };

const CONNECTIONS = 8;
const PIECE_BYTES = 64 * 1024;
const LOST =
  /^(ECONNRESET|ECONNREFUSED|ECONNABORTED|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|UND_ERR_(SOCKET|RES_CONTENT_LENGTH_MISMATCH|CONNECT_TIMEOUT|HEADERS_TIMEOUT|BODY_TIMEOUT))$/;
const SLOW = /^UND_ERR_(HEADERS|BODY)_TIMEOUT$/;

/** A client of one bucket. Buckets are addressed by path, which every storage understands. */
export async function s3Client(
  { bucket, url, region, accessKey, secretKey }: S3Storage,
  limits: S3Limits,
): Promise<S3mini> {
  const place = url ?? `https://s3.${region}.amazonaws.com`;
  return new S3mini({
    accessKeyId: accessKey.reveal(),
    secretAccessKey: secretKey.reveal(),
    endpoint: `${place}/${bucket}`,
    region,
    fetch: await limitedFetch(new URL(place).origin, limits),
  });
}

/**
 * A fetch to one origin. Unlike Node's own it ends a request when no byte moves for a while, and
 * not a slow one that moves.
 */
async function limitedFetch(origin: string, { connectMs, stallMs }: S3Limits): Promise<typeof fetch> {
  const [{ default: Pool }, { default: request }] = await Promise.all([
    import('undici/lib/dispatcher/pool.js'),
    import('undici/lib/api/api-request.js'),
  ]);
  const pool = new Pool(origin, {
    connections: CONNECTIONS,
    allowH2: false,
    headersTimeout: stallMs,
    bodyTimeout: stallMs,
    connect: { timeout: connectMs },
  });
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const method = (init?.method ?? 'GET') as 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE';
    const bytes = bytesOf(init?.body);
    const { statusCode, headers, body } = await request.call(pool, {
      path: `${url.pathname}${url.search}`,
      method,
      headers: {
        ...(init?.headers as Record<string, string>),
        ...(bytes && { 'content-length': String(bytes.length) }),
      },
      body: bytes === undefined ? null : Readable.from(pieces(bytes)),
    });
    // The client asks for a list and takes 404 as an empty one; with a body it would lose the
    // reason.
    if (statusCode === 404 && url.searchParams.has('list-type')) throw listMissing(await body.text());
    const whole = method === 'HEAD' || statusCode >= 300 || statusCode === 204;
    const text = whole ? await body.text() : '';
    return new Response(whole ? text || null : (Readable.toWeb(body) as ReadableStream<Uint8Array>), {
      status: statusCode,
      headers: Object.entries(headers).flatMap(([name, value]) =>
        [value ?? []].flat().map((each): [string, string] => [name, each]),
      ),
    });
  };
}

function listMissing(answer: string): Error {
  const serviceCode = /<Code>([A-Za-z]{1,64})<\/Code>/.exec(answer)?.[1];
  return Object.assign(new Error('The list is missing.'), { status: 404, serviceCode });
}

function bytesOf(body: RequestInit['body']): Uint8Array | undefined {
  if (typeof body === 'string') return body === '' ? undefined : Buffer.from(body);
  return body instanceof Uint8Array ? body : undefined;
}

/** In pieces, so that the time limit begins again with each one that was sent. */
function* pieces(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

/** True for a failure that another try may mend. */
export function isTransient(error: unknown): boolean {
  const status = statusOf(error);
  if (status !== undefined) return status >= 500 || status === 429 || status === 408;
  return LOST.test(lowestCode(error) ?? '');
}

/** A failure as a sentence about `place`. Has neither keys nor signatures. */
export function explainS3(error: unknown, place: string, { stallMs }: Pick<S3Limits, 'stallMs'>): unknown {
  if (error instanceof AppError || error instanceof StackError) return error;
  const [status, code] = [statusOf(error), lowestCode(error)];
  const serviceCode = textMember(error, 'serviceCode');
  const explained = serviceProblem(status, serviceCode, place) ?? networkProblem(code, place, stallMs);
  if (explained !== undefined) return explained;
  const why = status === undefined ? (code ?? messageOf(error)) : `status ${status} ${serviceCode ?? ''}`.trim();
  return new StackError(`${place} failed: ${why}.`, 'check the storage and the BACKUP_S3_ settings', error);
}

function serviceProblem(status: number | undefined, code: string | undefined, place: string): StackError | undefined {
  if (status === undefined) return undefined;
  if (/AccessKey|NoSuchUser|UserNotFound/.test(code ?? ''))
    return new StackError(`${place} does not know the access key.`, 'check BACKUP_S3_ACCESS_KEY');
  if (code === 'SignatureDoesNotMatch')
    return new StackError(`${place} refused the secret key.`, 'check BACKUP_S3_SECRET_KEY and BACKUP_S3_REGION');
  if (code === 'RequestTimeTooSkewed')
    return new StackError(`${place} refused the time of this machine.`, 'set the clock of this machine');
  if (code === 'NoSuchBucket' || status === 404)
    return new StackError(`The bucket of ${place} does not exist.`, 'create it, or correct BACKUP_TARGET');
  if (status === 403 || status === 401)
    return new StackError(
      `${place} refused access.`,
      'check BACKUP_S3_ACCESS_KEY and BACKUP_S3_SECRET_KEY, and that this key may list, read, write and delete there',
    );
  if (status === 507 || code === 'QuotaExceeded' || code === 'XMinioStorageFull')
    return new StackError(`${place} is full.`, 'delete old backups there, or raise its quota');
  return undefined;
}

function networkProblem(code: string | undefined, place: string, stallMs: number): StackError | undefined {
  const remedy = 'check BACKUP_S3_URL, the network and the storage';
  if (code === undefined) return undefined;
  if (SLOW.test(code)) return new StackError(`${place} did not answer within ${stallMs / 1000} s.`, remedy);
  if (code === 'ECONNREFUSED') return new StackError(`Nothing listens at the address of ${place}.`, remedy);
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return new StackError(`Couldn't look up the address of ${place}.`, remedy);
  if (/CERT|SIGNATURE|ALTNAME/.test(code))
    return new StackError(
      `${place} shows a certificate that this machine does not trust (${code}).`,
      'check BACKUP_S3_URL, or name its CA in NODE_EXTRA_CA_CERTS',
    );
  return LOST.test(code) ? new StackError(`The connection to ${place} was lost (${code}).`, remedy) : undefined;
}

function statusOf(error: unknown): number | undefined {
  for (const each of chainOf(error)) if ('status' in each && typeof each.status === 'number') return each.status;
  return undefined;
}

function lowestCode(error: unknown): string | undefined {
  return chainOf(error)
    .map((each) => codeOf(each))
    .findLast((code) => code !== undefined);
}

function textMember(error: unknown, name: string): string | undefined {
  for (const each of chainOf(error)) {
    const value: unknown = (each as unknown as Record<string, unknown>)[name];
    if (typeof value === 'string' && /^[A-Za-z]{1,64}$/.test(value)) return value;
  }
  return undefined;
}

function chainOf(error: unknown): Error[] {
  const chain: Error[] = [];
  for (let each = error; each instanceof Error && chain.length < 5; each = each.cause) chain.push(each);
  return chain;
}

export interface UnfinishedUpload {
  key: string;
  uploadId: string;
  initiated: string;
}

/** The uploads of an answer to ListMultipartUploads, however its members are spelled. */
export function uploadsIn(answer: unknown): UnfinishedUpload[] {
  const result = member(answer, 'ListMultipartUploadsResult') ?? answer;
  return [member(result, 'Upload') ?? []].flat().flatMap((each) => {
    const [key, uploadId, initiated] = [member(each, 'Key'), member(each, 'UploadId'), member(each, 'Initiated')];
    return typeof key === 'string' && typeof uploadId === 'string' && typeof initiated === 'string'
      ? [{ key, uploadId, initiated }]
      : [];
  });
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return (
    (value as Record<string, unknown>)[name] ??
    (value as Record<string, unknown>)[name[0]!.toLowerCase() + name.slice(1)]
  );
}
