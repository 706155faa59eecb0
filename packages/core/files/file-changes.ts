// What is changed of files that are there: deleted, and described anew.

import { z } from 'zod';
import { visiblePlaces } from '../groups/own-groups.ts';
import { CoreFault, emptyAnswer } from '../http/answers.ts';
import { invalid, readJson, readText } from '../http/body.ts';
import { type AdminContext, isAdmin } from '../http/route.ts';
import type { ResourceChange } from '../store/resources.ts';
import { asked, goodExpiration, goodKeywords, goodText, MOST_TOOL, pathHash, plainType } from './asked.ts';
import type { FilesOptions } from './options.ts';

const MOST_BODY_BYTES = 4096;

type Wanted = { hash?: string; id?: number };

export function fileChanges(options: Pick<FilesOptions, 'resources' | 'people' | 'groups' | 'activeGroups' | 'log'>) {
  const { resources, log } = options;

  /** Resolves with why nothing was changed. */
  async function refusal(groups: number[] | 'all', wanted: Wanted): Promise<CoreFault> {
    if ((await resources.count({ groups, ...wanted })) === 0)
      return new CoreFault('not found', 'There is no such file.');
    return new CoreFault('forbidden', 'Only who has submitted a file and administrators may do this.');
  }

  /** Of others than an admin only what they have submitted themselves. */
  async function remove(c: AdminContext, wanted: Wanted): Promise<void> {
    const { caller } = c.env;
    const groups = await visiblePlaces(caller, options);
    const files = await resources.remove({ groups, ...wanted }, isAdmin(caller) ? undefined : caller.username);
    if (files === 0) throw await refusal(groups, wanted);
    log.info('file.deleted', { ...wanted, files, user: caller.username });
  }

  async function changeOf(c: AdminContext): Promise<ResourceChange> {
    const what = c.req.param('what');
    if (what === 'keywords') return { keywords: goodKeywords(await readJson(c, z.array(z.string()))) };
    const text = what === 'expiration' ? asked(c, 'expiration') : undefined;
    const value = text ?? (await readText(c, MOST_BODY_BYTES)).trim();
    if (what === 'expiration') return { expiration: goodExpiration(value) };
    if (what === 'tool') return { tool: goodText('tool', value, MOST_TOOL) };
    if (what !== 'mimetype') throw new CoreFault('not found', 'A file has tool, mimetype, keywords and expiration.');
    const mimeType = plainType(value);
    if (mimeType === undefined) throw invalid('mimetype must be a type such as application/zip');
    return { mimeType };
  }

  /** The tool may be set by whoever sees the file: devices that send it on say by it whether others find it. */
  async function describe(c: AdminContext): Promise<Response> {
    const { caller } = c.env;
    const change = await changeOf(c);
    const hash = pathHash(c);
    const groups = await visiblePlaces(caller, options);
    const anybodys = isAdmin(caller) || change.tool !== undefined;
    const changed = await resources.change({ groups, hash }, change, anybodys ? undefined : caller.username);
    if (changed === 0) throw await refusal(groups, { hash });
    return emptyAnswer();
  }

  return { remove, describe };
}
