/**
 * Access control: authentication, rate limits and permissions, in the order of the contract (401, 429, 403).
 *
 * The REST API takes API keys, and operators who name a workspace in X-Workspace. The admin API takes operators only: by operator token,
 * or by session cookie, whose writes must come from our own pages (CSRF). On the control socket every caller is a user of the shell.
 * Every answer carries X-RateLimit headers for the key or operator or, without a valid one, for the client address. The limit per address
 * also slows down guessing of keys.
 */
import type { Context } from 'koa'
import { SYSTEM, type Actor } from '../core/actor.js'
import { AppError, ERRORS } from '../core/errors.js'
import type { Holder } from '../core/holder.js'
import type { Clock } from '../world/time/clock.js'
import { addressHolder, addressKey, NetworkList } from '../world/net/ip-address.js'
import { windowHeaders } from './answer/error-body.js'
import { clientAddress } from './client-address.js'
import type { ClientRequest } from './network-access.js'
import {
  OPERATOR_TOKEN_PREFIX,
  hasRoleIn,
  mayOperate,
  operatorHolder,
  requirePermission,
  requireRecentSignIn,
  shellOperator,
  type OperatorAccess,
  type OperatorPrincipal,
} from './operator.js'
import { mayDo, type Authenticate, type Permission, type Principal } from './principal.js'
import { ALL_WORKSPACES } from './roles.js'
import type { Access, AdminAccess, ListedAccess, Route } from './route.js'
import { sessionToken } from './session-cookie.js'
import { SlidingWindow, type OpenWindow, type WindowState } from './sliding-window.js'

export interface GateParts {
  readonly clock: Clock
  readonly authenticate: Authenticate
  /** Absent: neither sessions nor operator tokens are accepted. */
  readonly operators?: OperatorAccess
  /** `public_url`, from whose pages operators may write. */
  readonly publicUrl?: string
  /** Networks of reverse proxies whose X-Forwarded-For names the client. */
  readonly trustedProxies?: readonly string[]
  /** Requests per minute from an address without a valid key; 0 = unlimited. */
  readonly anonymousRateLimit: number
  /** Where several nodes share the limits; by default each process counts for itself. */
  readonly openWindow?: OpenWindow | undefined
}

/** The parts of a route that control access. */
export type Admission = Pick<Route['head'], 'access' | 'isLimited' | 'api' | 'knows'>

/** Who calls, as the handlers see it. */
export interface Caller {
  readonly principal: Principal
  /** Of an admin route that is not public. */
  readonly operator?: OperatorPrincipal
  /** The workspace named by an admin route's path or query. */
  readonly workspaceId?: string
  /** Of a public route with `knows`. */
  readonly isKnown?: boolean
}

/** Requests per minute of one operator. */
const OPERATOR_RATE_LIMIT = 3_000

/** Listed networks are those of direct connections. */
const NO_PROXIES = new NetworkList([])

/** Its peer is the client of the connection, which may be a proxy. */
function directRequest(ctx: Context): ClientRequest {
  return { peer: clientAddress(ctx.req, NO_PROXIES), header: name => ctx.get(name) }
}

/** Placeholder principal for routes without a key; their handlers never see it. */
const NOBODY: Principal = {
  keyId: '',
  keyName: '',
  actor: SYSTEM,
  workspaceId: '',
  liveWorkspaceId: '',
  keyType: 'custom',
  permissions: [],
  isSandbox: true,
  rateLimit: 1,
  emailRateLimit: 1,
}

export class Gate {
  private readonly parts: GateParts
  private readonly isControl: boolean
  private readonly keyWindows: SlidingWindow
  private readonly addressWindows: SlidingWindow
  private readonly proxies: NetworkList

  /** @param isControl on the control socket: every caller is a user of the shell, named by X-Shell-User */
  constructor(parts: GateParts, isControl = false) {
    this.parts = parts
    this.isControl = isControl
    const { openWindow = () => new SlidingWindow(parts.clock) } = parts
    this.keyWindows = openWindow('requests of a key')
    this.addressWindows = openWindow('requests of an address')
    this.proxies = new NetworkList(parts.trustedProxies ?? [])
  }

  /** @throws AppError unauthorized, workspace_not_found, rate_limited, forbidden, sign_in_required, not_found */
  async admit(ctx: Context, { access, isLimited = false, api, knows }: Admission): Promise<Caller> {
    // Access to the socket grants full control.
    if (access === 'control') return { principal: NOBODY }
    if (access === 'public') {
      if (isLimited) await this.prepareAddress(ctx)
      const state = this.countAddress(ctx)
      // Otherwise counted but not enforced, so that monitors may poll /health freely.
      if (isLimited && !state.isAllowed) throw tooMany(state)
      if (api === 'admin') this.requireOwnPage(ctx)
      return knows ? { principal: NOBODY, isKnown: await this.isKnown(ctx, knows) } : { principal: NOBODY }
    }
    if (typeof access !== 'object') return this.admitKey(ctx, access)
    if (!this.isListed(ctx, access)) return this.admitOperator(ctx, access)
    this.countAddress(ctx)
    return { principal: NOBODY }
  }

  private async admitKey(ctx: Context, access: Permission | 'key'): Promise<Caller> {
    const caller = await this.identify(ctx, async () => {
      const operator = await this.findOperator(ctx)
      return operator ? this.actingIn(ctx, operator) : this.parts.authenticate(bearerToken(ctx))
    })
    await this.keyWindows.prepare(caller.keyId, 1, caller.rateLimit)
    this.count(ctx, caller.keyId, caller.rateLimit)
    if (access !== 'key' && !mayDo(caller, access))
      throw new AppError(
        'forbidden',
        `this ${caller.actor.type === 'api_key' ? 'key' : 'role'} lacks the permission ${access}`,
      )
    return { principal: { ...caller, actor: this.from(ctx, caller.actor) } }
  }

  private async admitOperator(ctx: Context, access: AdminAccess | ListedAccess): Promise<Caller> {
    const operator = await this.identify(ctx, async () => {
      const found = await this.findOperator(ctx)
      if (found) return found
      if ('isListed' in access && ctx.get('Authorization') === '')
        throw new AppError('not_found', 'no such path')
      throw new AppError(
        'unauthorized',
        ctx.get('Authorization') === ''
          ? 'sign in, or send an operator token as `Authorization: Bearer pa_...`'
          : 'the admin API takes operator tokens (pa_...); API keys have no access',
      )
    })
    await this.keyWindows.prepare(`operator:${operator.id}`, 1, OPERATOR_RATE_LIMIT)
    this.count(ctx, `operator:${operator.id}`, OPERATOR_RATE_LIMIT)
    const workspaceId = requireGrant(ctx, operator, access)
    if (access.isSensitive) requireRecentSignIn(operator, this.parts.clock.now())
    const actor = this.from(ctx, operator.actor)
    return {
      principal: { ...NOBODY, keyId: `operator:${operator.id}`, keyName: operator.email, actor },
      operator: { ...operator, actor },
      ...(workspaceId === undefined ? {} : { workspaceId }),
    }
  }

  /** @returns undefined if the request carries neither session nor operator token */
  private async findOperator(ctx: Context): Promise<OperatorPrincipal | undefined> {
    const { operators } = this.parts
    if (this.isControl) return shellOperator(shellUser(ctx))
    if (!operators) return undefined
    if (ctx.get('Authorization') !== '') {
      const token = bearerToken(ctx)
      return token.startsWith(OPERATOR_TOKEN_PREFIX) ? operators.byToken(token) : undefined
    }
    const token = sessionToken(ctx.get('Cookie'), this.parts.publicUrl ?? '')
    if (token === undefined) return undefined
    const operator = await operators.bySession(token)
    this.requireOwnPage(ctx)
    return operator
  }

  /** The operator as a caller of the REST API. */
  private actingIn(ctx: Context, operator: OperatorPrincipal): Promise<Principal> {
    const workspaceId = ctx.get('X-Workspace')
    if (workspaceId === '')
      throw new AppError('validation_error', 'name the workspace by its id in the header X-Workspace', {
        path: 'X-Workspace',
      })
    const sandbox = ctx.get('X-Sandbox')
    if (!['', 'true', 'false'].includes(sandbox))
      throw new AppError('validation_error', 'X-Sandbox is true or false', { path: 'X-Sandbox' })
    if (!this.parts.operators) throw new AppError('unauthorized', 'operators are not accepted here')
    return this.parts.operators.inWorkspace(operator, workspaceId, sandbox === 'true')
  }

  /**
   * Refuses writes that another site's page makes with the operator's cookie (CSRF). Browsers send Sec-Fetch-Site or at least Origin with
   * every write; scripts use tokens, not cookies.
   *
   * @throws AppError forbidden
   */
  private requireOwnPage(ctx: Context): void {
    if (['GET', 'HEAD', 'OPTIONS'].includes(ctx.method) || this.isControl) return
    const site = ctx.get('Sec-Fetch-Site')
    const origin = ctx.get('Origin')
    const isOwnOrigin = origin === '' || isOwn(origin, [this.parts.publicUrl, `http://${ctx.get('Host')}`])
    if ((site !== '' || origin !== '') && ['', 'same-origin'].includes(site) && isOwnOrigin) return
    throw new AppError(
      'forbidden',
      "requests with a session cookie must come from the appliance's own pages; scripts use an operator token",
    )
  }

  private count(ctx: Context, keyId: string, limit: number): void {
    // For the log.
    ctx.state['keyId'] = keyId
    const isOperator = keyId.startsWith('operator:')
    const state = this.keyWindows.take(keyId, 1, isOperator ? OPERATOR_RATE_LIMIT : limit)
    ctx.set(windowHeaders(state))
    if (!state.isAllowed) throw tooMany(state)
  }

  private prepareAddress(ctx: Context): Promise<void> | undefined {
    const { anonymousRateLimit } = this.parts
    return this.addressWindows.prepare(addressKey(this.clientOf(ctx)), 1, anonymousRateLimit)
  }

  /** Adds rate limit headers to an answer that reached no route. */
  countAddress(ctx: Context): WindowState {
    const state = this.windowOf(this.clientOf(ctx))
    ctx.set(windowHeaders(state))
    return state
  }

  /** Adds the headers to an answer that is not the client's fault, and counts nothing. */
  showAddress(ctx: Context): void {
    const { anonymousRateLimit } = this.parts
    ctx.set(windowHeaders(this.addressWindows.take(addressKey(this.clientOf(ctx)), 0, anonymousRateLimit)))
  }

  /** Counts a request of the address. */
  windowOf(address: string): WindowState {
    return this.addressWindows.take(addressKey(address), 1, this.parts.anonymousRateLimit)
  }

  /** Whether the route exists for the caller: one for listed networks does not exist for others. */
  mayKnow(ctx: Context, access: Access): boolean {
    return typeof access !== 'object' || !('isListed' in access) || this.isListed(ctx, access)
  }

  private isListed(ctx: Context, access: AdminAccess | ListedAccess): boolean {
    return 'isListed' in access && access.isListed(directRequest(ctx))
  }

  /** A wrong credential makes a stranger, and no error: the route is open. */
  private async isKnown(ctx: Context, knows: NonNullable<Admission['knows']>): Promise<boolean> {
    if (knows(directRequest(ctx))) return true
    try {
      return (await this.findOperator(ctx)) !== undefined
    } catch (error) {
      if (error instanceof AppError) return false
      throw error
    }
  }

  /** IP address of the client, behind a trusted proxy the forwarded one; empty on the control socket. */
  clientOf({ req }: Pick<Context, 'req'>): string {
    return clientAddress(req, this.proxies)
  }

  /** Whose share the request uses of what all share. */
  holderOf(ctx: Context, { principal, operator, workspaceId }: Caller): Holder {
    const { keyId, liveWorkspaceId } = principal
    if (keyId === '') return addressHolder(this.clientOf(ctx))
    return operator ? operatorHolder(operator, workspaceId) : { owner: liveWorkspaceId, key: keyId }
  }

  private from(ctx: Context, actor: Actor): Actor {
    const peer = this.clientOf(ctx)
    return peer === '' ? actor : { ...actor, peer }
  }

  private async identify<T>(ctx: Context, find: () => Promise<T>): Promise<T> {
    try {
      return await find()
    } catch (error) {
      // A fault of ours, such as an unreachable database, says nothing about the key.
      if (!(error instanceof AppError) || isFault(error)) throw error
      await this.prepareAddress(ctx)
      const state = this.countAddress(ctx)
      if (!state.isAllowed) throw tooMany(state)
      // RFC 6750 §3.
      if (error.code === 'unauthorized') ctx.set('WWW-Authenticate', 'Bearer')
      throw error
    }
  }
}

/**
 * Checks the permission where the route's scope says.
 *
 * @returns the workspace that the request names @throws AppError not_found, forbidden
 */
function requireGrant(
  ctx: Context,
  operator: OperatorPrincipal,
  { permission, scope }: AdminAccess,
): string | undefined {
  if (permission === 'any') return undefined
  if (scope === 'appliance') {
    requirePermission(operator, permission, ALL_WORKSPACES)
    return undefined
  }
  if (scope === 'record') {
    const isAnywhere = operator.grants.some(grant => mayOperate(operator, permission, grant.workspaceId))
    if (!isAnywhere) requirePermission(operator, permission, ALL_WORKSPACES)
    return undefined
  }
  const params = ctx['params'] as Readonly<Record<string, string | undefined>>
  const named = scope === 'path' ? params['workspaceId'] : ctx.query['workspace_id']
  if (typeof named === 'string' && named !== ALL_WORKSPACES) {
    requirePermission(operator, permission, named)
    return named
  }
  if (mayOperate(operator, permission, ALL_WORKSPACES)) return undefined
  const workspaceIds = operator.grants.map(grant => grant.workspaceId)
  throw new AppError(
    'forbidden',
    workspaceIds.some(id => mayOperate(operator, permission, id) && hasRoleIn(operator, id))
      ? 'your role covers single workspaces: name one in workspace_id'
      : `your role lacks the permission ${permission}`,
  )
}

/** Of the server, not of the caller. */
function isFault({ code }: AppError): boolean {
  return ERRORS[code].status >= 500
}

/** Percent-encoded, since names of users may contain anything. */
function shellUser(ctx: Context): string {
  try {
    return decodeURIComponent(ctx.get('X-Shell-User')).slice(0, 100) || 'unknown'
  } catch {
    return 'unknown'
  }
}

function bearerToken(ctx: Context): string {
  const match = /^Bearer +([\x21-\x7e]{1,200}) *$/i.exec(ctx.get('Authorization'))
  if (!match?.[1]) throw new AppError('unauthorized', 'send the API key as `Authorization: Bearer <key>`')
  return match[1]
}

/** Compares host and port; the scheme differs behind a proxy that ends TLS. */
function isOwn(origin: string, own: readonly (string | undefined)[]): boolean {
  if (!URL.canParse(origin)) return false
  const { host } = new URL(origin)
  return own.some(url => url !== undefined && URL.canParse(url) && new URL(url).host === host)
}

function tooMany(state: WindowState): AppError {
  return new AppError('rate_limited', `more than ${state.limit} requests in the last minute`, {
    retryAfterMs: state.retryAfterMs,
  })
}
