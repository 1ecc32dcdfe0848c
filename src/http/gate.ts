/**
 * Access control: bearer authentication, rate limits and permissions, in the order of the contract (401, 429, 403).
 *
 * Every answer carries X-RateLimit headers for the key or, without a valid key, for the client address. The limit per address also
 * slows down guessing of keys.
 */
import type { Context } from 'koa'
import { AppError } from '../core/errors.js'
import type { Clock } from '../world/time/clock.js'
import { addressKey } from '../world/net/ip-address.js'
import { windowHeaders } from './answer/error-body.js'
import { mayDo, type Authenticate, type Principal } from './principal.js'
import type { Route } from './route.js'
import { SlidingWindow, type WindowState } from './sliding-window.js'

export interface GateParts {
  readonly clock: Clock
  readonly authenticate: Authenticate
  /** Requests per minute from an address without a valid key; 0 = unlimited. */
  readonly anonymousRateLimit: number
}

/** The parts of a route that control access. */
export type Admission = Pick<Route['head'], 'access' | 'isLimited'>

/** Placeholder principal for routes without a key; their handlers never see it. */
const NOBODY: Principal = {
  keyId: '',
  keyName: '',
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
  private readonly keyWindows: SlidingWindow
  private readonly addressWindows: SlidingWindow

  constructor(parts: GateParts) {
    this.parts = parts
    this.keyWindows = new SlidingWindow(parts.clock)
    this.addressWindows = new SlidingWindow(parts.clock)
  }

  /** @throws AppError unauthorized, workspace_not_found, rate_limited, forbidden, not_found */
  async admit(ctx: Context, { access, isLimited = false }: Admission): Promise<Principal> {
    // Access to the socket grants full control.
    if (access === 'control') return NOBODY
    if (access === 'public' || access === 'loopback') {
      const state = this.countAddress(ctx)
      // Otherwise counted but not enforced, so that monitors may poll /health freely.
      if (isLimited && !state.isAllowed) throw tooMany(state)
      if (access === 'loopback' && !this.isFromThisMachine(ctx))
        throw new AppError('not_found', 'no such path')
      return NOBODY
    }
    const principal = await this.identify(ctx)
    // For the log.
    ctx.state['keyId'] = principal.keyId
    const state = this.keyWindows.take(principal.keyId, 1, principal.rateLimit)
    ctx.set(windowHeaders(state))
    if (!state.isAllowed) throw tooMany(state)
    if (access !== 'key' && !mayDo(principal, access))
      throw new AppError('forbidden', `this key lacks the permission ${access}`)
    return principal
  }

  /** Adds rate limit headers to an answer that reached no route. */
  countAddress(ctx: Context): WindowState {
    const state = this.windowOf(ctx.req.socket.remoteAddress ?? '')
    ctx.set(windowHeaders(state))
    return state
  }

  /** Counts a request of the address. */
  windowOf(address: string): WindowState {
    return this.addressWindows.take(addressKey(address), 1, this.parts.anonymousRateLimit)
  }

  /**
   * Accepts direct loopback connections only. Refuses requests forwarded by a local reverse proxy (Forwarded headers) and requests
   * of web pages in a local browser: a foreign Host (DNS rebinding) or another origin (Origin, Sec-Fetch-Site).
   */
  isFromThisMachine(ctx: Context): boolean {
    const address = ctx.req.socket.remoteAddress ?? ''
    const isLoopback = address === '::1' || /^(::ffff:)?127\./.test(address)
    const isForwarded =
      ctx.get('Forwarded') !== '' || ctx.get('X-Forwarded-For') !== '' || ctx.get('Via') !== ''
    const host = ctx.get('Host')
    const isOwnHost = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/.test(host)
    return isLoopback && !isForwarded && isOwnHost && !isFromAnotherPage(ctx, host)
  }

  private async identify(ctx: Context): Promise<Principal> {
    try {
      return await this.parts.authenticate(bearerToken(ctx))
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      const state = this.countAddress(ctx)
      if (!state.isAllowed) throw tooMany(state)
      // RFC 6750 §3.
      if (error.code === 'unauthorized') ctx.set('WWW-Authenticate', 'Bearer')
      throw error
    }
  }
}

function bearerToken(ctx: Context): string {
  const match = /^Bearer +([\x21-\x7e]{1,200}) *$/i.exec(ctx.get('Authorization'))
  if (!match?.[1]) throw new AppError('unauthorized', 'send the API key as `Authorization: Bearer <key>`')
  return match[1]
}

function isFromAnotherPage(ctx: Context, host: string): boolean {
  const origin = ctx.get('Origin')
  // `none`: address typed in or opened from a bookmark.
  const isOwnSite = ['', 'none', 'same-origin'].includes(ctx.get('Sec-Fetch-Site'))
  return !isOwnSite || (origin !== '' && origin !== `http://${host}`)
}

function tooMany(state: WindowState): AppError {
  return new AppError('rate_limited', `more than ${state.limit} requests in the last minute`, {
    retryAfterMs: state.retryAfterMs,
  })
}
