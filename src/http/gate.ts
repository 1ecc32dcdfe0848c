/**
 * Who may pass: bearer authentication, request limits and permissions, in the contract's order (401, 429, 403).
 *
 * Every answer carries the X-RateLimit headers of what was counted: the key's window, or for callers without a valid
 * key the window of their address, which also bounds the guessing of keys.
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
  /** Requests per minute for a client address without a valid key; 0 = unlimited. */
  readonly anonymousRateLimit: number
}

/** What a route says of who may pass. */
export type Admission = Pick<Route['head'], 'access' | 'isLimited'>

/** Stands in for the caller of a route that needs no key; such a route's handler never sees it. */
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
    // Who came to it may do everything there.
    if (access === 'control') return NOBODY
    if (access === 'public' || access === 'loopback') {
      const state = this.countAddress(ctx)
      // Elsewhere counted and shown but not enforced: a monitor asks for /health as often as it likes.
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

  /** Shows the address's window on answers that never came to a route. */
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
   * Only a connection from this machine's own loopback, and not one that a reverse proxy here made for somebody else
   * (Forwarded headers) or that a browser was tricked into: a foreign Host, as in DNS rebinding, or a page of another origin
   * that asks (Origin, and Sec-Fetch-Site, which browsers send with every request).
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
  // `none`: typed in, or a bookmark.
  const isOwnSite = ['', 'none', 'same-origin'].includes(ctx.get('Sec-Fetch-Site'))
  return !isOwnSite || (origin !== '' && origin !== `http://${host}`)
}

function tooMany(state: WindowState): AppError {
  return new AppError('rate_limited', `more than ${state.limit} requests in the last minute`, {
    retryAfterMs: state.retryAfterMs,
  })
}
