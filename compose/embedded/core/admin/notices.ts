// /Marti/api/stream/notices: a word of the operators to everybody who is connected. Of our own: a release has no such call.

import { z } from 'zod';
import { isNoticeText } from '../../../../shared/domain/notice-text.ts';
import { wrapped } from '../http/answers.ts';
import { notice } from '../stream/notice.ts';
import { readJson } from './body.ts';
import type { AdminApiOptions, AdminContext, AdminRoute } from './route.ts';

const WANTED = 'must have 1 to 1000 characters, and no control characters but newline';
const noticeSchema = z.strictObject({ text: z.string().refine(isNoticeText, WANTED) });

export function noticeRoutes({ toEverybody, nodeId, now }: AdminApiOptions): AdminRoute[] {
  async function tell(c: AdminContext): Promise<Response> {
    const { text } = await readJson(c, noticeSchema);
    return wrapped('StreamNotice', { clients: toEverybody(notice(text, now())) }, nodeId);
  }

  return [{ path: '/Marti/api/stream/notices', handlers: { POST: tell } }];
}
