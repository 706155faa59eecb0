// Reads newer releases and the time from other hosts over HTTP.

import { z } from 'zod';
import { AppError, causeOf, codeOf } from '@holdfast/kit/app-error';
import { readBodyText } from '@holdfast/kit/body';
import type { ClockSource, Release, ReleaseFeed, ReleaseSource } from './port.ts';

const WITHIN_MS = 5_000;
/** GitHub's lists hold the notes of thirty releases. */
const MAX_BYTES = 4_000_000;
/** A server answered, but its answer can't be trusted or used. */
const REACHED = /CERT|TLS|SSL|SIGNED|SIGNATURE|^HPE_|REDIRECT/;

const dateSchema = z.coerce
  .date()
  .nullish()
  .transform((date) => date ?? undefined)
  .catch(undefined);
const cyclesSchema = z.array(z.object({ latest: z.string().optional(), latestReleaseDate: dateSchema }));
const githubSchema = z.array(
  z.object({
    tag_name: z.string(),
    draft: z.boolean().default(false),
    prerelease: z.boolean().default(false),
    published_at: dateSchema,
  }),
);

export interface ReleaseFeedOptions {
  /** endoflife.date, or a mirror: GET {url}/{product}.json lists cycles with their latest. */
  endoflifeUrl: string;
  /** GitHub's API, or a mirror: GET {url}/repos/{owner}/{repository}/releases. */
  githubUrl: string;
  /** The platform's. */
  fetch: typeof globalThis.fetch;
}

/** Reads newer releases. The requests name no installation and no version. */
export function releaseFeed({ endoflifeUrl, githubUrl, fetch }: ReleaseFeedOptions): ReleaseFeed {
  async function releases({ at, product }: ReleaseSource): Promise<Release[]> {
    if (at === 'endoflife') {
      const listed = await read(endoflifeUrl, `${encodeURIComponent(product)}.json`, cyclesSchema, 'UPDATES_URL');
      return listed.flatMap(({ latest, latestReleaseDate }) =>
        latest === undefined ? [] : [{ version: latest, releasedAt: latestReleaseDate, notes: undefined }],
      );
    }
    const listed = await read(githubUrl, `repos/${product}/releases`, githubSchema, 'UPDATES_GITHUB_URL');
    return listed
      .filter(({ draft, prerelease }) => !draft && !prerelease)
      .map(({ tag_name: tag, published_at: releasedAt }) => ({
        // `version/2026.8.3` of authentik, `v2.11.3` of Caddy.
        version: tag.replace(/^.*\//, '').replace(/^v(?=\d)/, ''),
        releasedAt,
        notes: `https://github.com/${product}/releases/tag/${encodeURIComponent(tag)}`,
      }));
  }

  async function read<T>(url: string, path: string, schema: z.ZodType<T[]>, setting: string): Promise<T[]> {
    const { host } = new URL(url);
    const answer = await reach(host, `${url.replace(/\/$/, '')}/${path}`);
    if (answer.status === 404) return [];
    const listed = schema.safeParse(parsed(answer.text));
    if (answer.status === 200 && listed.success) return listed.data;
    throw new AppError(
      'upstream',
      `${host} answered with status ${answer.status} instead of a list of releases. Check ${setting}.`,
    );
  }

  async function reach(host: string, address: string): Promise<{ status: number; text: string | undefined }> {
    try {
      const response = await fetch(address, {
        signal: AbortSignal.timeout(WITHIN_MS),
        // GitHub refuses requests without a name.
        headers: { accept: 'application/json', 'user-agent': 'holdfast' },
      });
      return { status: response.status, text: await textOf(response) };
    } catch (error) {
      const reached = REACHED.test(`${codeOf(error)} ${causeOf(error)}`.toUpperCase());
      const message = `Couldn't reach ${host} (${causeOf(error)})`;
      throw new AppError(reached ? 'upstream' : 'unavailable', message, { cause: error });
    }
  }

  return { releases };
}

/** Undefined when it is longer than any list of releases. */
async function textOf(response: Response): Promise<string | undefined> {
  const tooLong = new Error('longer than any list of releases');
  return readBodyText(response.body, MAX_BYTES, () => tooLong).catch((error: unknown) => {
    if (error === tooLong) return undefined;
    throw error;
  });
}

function parsed(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Reads an HTTP server's clock from the Date header of any response. `name` is displayed to people.
 */
export function httpClock(name: string, url: string, fetch: typeof globalThis.fetch): ClockSource {
  async function readMs(): Promise<number> {
    let response: Response;
    try {
      response = await fetch(url, { method: 'HEAD', redirect: 'manual', signal: AbortSignal.timeout(WITHIN_MS) });
    } catch (error) {
      throw new AppError('unavailable', `The ${name} does not answer on ${url} (${causeOf(error)})`, { cause: error });
    }
    const date = Date.parse(response.headers.get('date') ?? '');
    if (Number.isNaN(date)) throw new AppError('upstream', `The ${name} sent no Date header`);
    return date;
  }

  return { name, readMs, resolutionMs: 1000 };
}
