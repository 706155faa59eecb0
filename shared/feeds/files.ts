// Keeps feeds in a file below the core's data directory, from which the flow engine is supplied,
// and reads what the engine reports there.

import { join } from 'node:path';
import { z } from 'zod';
import { AppError, codeOf, messageOf } from '@holdfast/kit/app-error';
import { fileProblemOf, readBounded, replaceFile } from '@holdfast/kit/files';
import { type Feed, type FeedReport, feedReportSchema, type Feeds } from './port.ts';
import { feedInput, feedName, header } from './rules.ts';

const MAX_BYTES = 1_000_000;

const fileSchema = z.object({
  feeds: z.array(feedInput.extend({ name: feedName, header: header.nullable(), active: z.boolean() })),
});

/** `feeds` below CORE_DATA_DIR. Readable by its owner only: sources have secrets. */
export class FeedFiles implements Feeds {
  readonly #file: string;
  readonly #report: string;

  constructor(coreDirectory: string) {
    this.#file = join(coreDirectory, 'feeds', 'feeds.json');
    this.#report = join(coreDirectory, 'feeds', 'report.json');
  }

  async list(): Promise<Feed[]> {
    const found = await contentOf(this.#file, fileSchema);
    return (found?.feeds ?? []).toSorted((a, b) => a.name.localeCompare(b.name));
  }

  async write(feeds: readonly Feed[]): Promise<void> {
    await replaceFile(this.#file, JSON.stringify({ feeds })).catch((error: unknown) => {
      throw unreadable(this.#file, error);
    });
  }

  /** A report that is no report is none: the engine writes the next one within half a minute. */
  report(): Promise<FeedReport | undefined> {
    return contentOf(this.#report, feedReportSchema).catch((error: unknown) => {
      if (error instanceof AppError && isDamage(error.cause)) return undefined;
      throw error;
    });
  }
}

/** Undefined when there is no such file. */
async function contentOf<T>(file: string, schema: z.ZodType<T>): Promise<T | undefined> {
  try {
    return schema.parse(JSON.parse((await readBounded(file, MAX_BYTES, { ownOnly: true })).toString()));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw unreadable(file, error);
  }
}

function isDamage(error: unknown): error is Error {
  return error instanceof z.ZodError || error instanceof SyntaxError;
}

function unreadable(file: string, error: unknown): AppError {
  const problem = isDamage(error) ? `is damaged (${messageOf(error).slice(0, 200)})` : fileProblemOf(error);
  return new AppError('unavailable', `${file} ${problem}.`, { cause: error });
}
