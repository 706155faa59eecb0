// Describes a route once: path, who may call it, what it takes and gives. The same schemas validate
// and document.

import { createRoute, type RouteConfig, z } from '@hono/zod-openapi';
import type { ErrorCode } from '@holdfast/kit/app-error';
import type { Access, Area, RouteDemand } from '../sign-in/rules.ts';
import { statusOf } from './problem.ts';
import { requireAccess } from './sign-in.ts';

export const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string(),
    request_id: z.string(),
    errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
    figures: z.record(z.string(), z.unknown()).optional(),
  })
  .openapi('Problem');

const PROBLEM = { 'application/problem+json': { schema: problemSchema } };

interface RouteOptions {
  access: Access;
  /** Default: `rest`. */
  area?: Area;
  /** Failures that this route can answer besides those of its access and of its body. */
  fails?: ErrorCode[];
}

/**
 * A route of the API with its access, its security and every error that it can answer. `demand` is
 * no part of its document, which names the access as `x-access`.
 */
export function apiRoute<const R extends RouteConfig>(
  config: R,
  { access, area = 'rest', fails = [] }: RouteOptions,
): R & { getRoutingPath(): string; readonly demand: RouteDemand } {
  const demand = { access, area };
  const codes: ErrorCode[] = [...fails, 'internal'];
  if (access !== 'open') codes.push('malformed', 'unauthenticated', 'forbidden', 'locked_out', 'unavailable');
  if (config.request?.body !== undefined) codes.push('malformed', 'media_type', 'too_large', 'invalid');
  const problems = Object.fromEntries(
    codes.map((code) => {
      const alike = new Set(codes.filter((each) => statusOf(each) === statusOf(code)));
      return [statusOf(code), { description: [...alike].join(', ').replaceAll('_', ' '), content: PROBLEM }];
    }),
  );
  const route = {
    ...config,
    'x-access': access,
    ...(access === 'open'
      ? { security: [] }
      : { security: [{ basic: [] }, { session: [] }, { bearer: [] }], middleware: [requireAccess(demand)] }),
    responses: { ...config.responses, ...problems },
  };
  return Object.defineProperty(Object.assign(createRoute(route), { demand }), 'demand', { enumerable: false });
}

/** The JSON answer of a route. */
export function jsonAnswer<const S extends z.ZodType>(description: string, schema: S) {
  return { description, content: { 'application/json': { schema } } };
}
