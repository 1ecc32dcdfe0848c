/**
 * Answers requests that match no route: OPTIONS, unsupported methods, unknown paths.
 *
 * Called by `app.ts`. Below the API base all but public paths require a key first, like every route there.
 * Standards: RFC 9110 §9.3.7 (OPTIONS), §15.5.6 (405 with Allow).
 * Fails: AppError not_found, method_not_allowed, and as the gate does.
 */
import type { Context } from 'koa'
import { AppError } from '../core/errors.js'
import type { Gate } from './gate.js'
import { ADMIN_BASE, API_BASE, type Route } from './route.js'

/** @param declared routes of this path, whatever their method @param api base of the API the path belongs to */
export async function answerUndeclared(
  ctx: Context,
  gate: Gate,
  declared: readonly Route[],
  api: string | undefined,
): Promise<void> {
  const known = declared.filter(({ head }) => gate.mayKnow(ctx, head.access))
  const isOpen = known.some(({ head }) => head.access === 'public')
  const allowed = allowedMethods(known)
  if (ctx.method === 'OPTIONS' && known.length > 0) {
    gate.countAddress(ctx)
    ctx.set('Allow', allowed)
    ctx.status = 204
    return
  }
  if (api === ADMIN_BASE && !isOpen)
    await gate.admit(ctx, { access: { permission: 'any', scope: 'appliance' } })
  if (api === API_BASE && !isOpen) await gate.admit(ctx, { access: 'key' })
  if (known.length === 0) throw new AppError('not_found', 'no such path')
  ctx.set('Allow', allowed)
  throw new AppError('method_not_allowed', `this path takes ${allowed}`)
}

/** GET implies HEAD, and every path supports OPTIONS. */
function allowedMethods(routes: readonly Route[]): string {
  const methods = routes.map(({ head }) => head.method as string)
  return [...new Set([...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'])].sort().join(', ')
}
