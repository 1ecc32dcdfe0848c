/**
 * Wires the HTTP listeners: API and public pages, in clear and over TLS, together or separate; and the redirect from port 80 to HTTPS.
 *
 * Part of the composition root, opened by `phases/listeners.ts`. All listeners answer ACME challenges.
 * Standards: RFC 6797 (HSTS: only over TLS, never with an untrusted certificate), RFC 9110 §15.4.9 (308).
 * Rejects with an Error naming the address that cannot be bound; nothing stays open.
 */
import type { LiveConfig } from '../appliance.js'
import { servedTogether } from '../../http/public/served-together.js'
import type { PublicApp } from '../../http/public/public-app.js'
import { httpRedirect } from '../../http/redirect.js'
import type { Certificates } from '../open-certificates.js'
import type { HttpHandler } from '../../world/net/http-connections.js'
import {
  markIpv6Only,
  listenHttp,
  listenHttps,
  type ListenAddress,
  type Listener,
} from '../../world/net/listen.js'
import { openProxyProtocol } from '../../world/net/proxy-protocol.js'
import type { World } from '../../world/world.js'
import type { TlsCertificate } from '../../world/tls/tls-certificate.js'

/** Addresses actually bound. */
export interface HttpAddresses {
  readonly http: readonly ListenAddress[]
  readonly https: readonly ListenAddress[]
  /** Listeners for public pages only; empty if the API's listeners serve them. */
  readonly public: readonly ListenAddress[]
  readonly publicTls: readonly ListenAddress[]
  readonly redirect: readonly ListenAddress[]
}

export interface HttpListeners {
  readonly addresses: HttpAddresses
  /** Open connections of all listeners. */
  readonly connections: number
  close(graceMs: number): Promise<void>
}

const YEAR_SECONDS = 31_536_000

export async function openHttpListeners(
  live: LiveConfig,
  api: HttpHandler,
  pages: PublicApp,
  { certificate, challenges }: Pick<Certificates, 'certificate' | 'challenges'>,
  { clock, log }: Pick<World, 'clock' | 'log'>,
): Promise<HttpListeners> {
  const { http, publicUrl } = live.current
  const limits = {
    get connections() {
      return live.current.http.connections
    },
    get connectionsPerAddress() {
      return live.current.http.connectionsPerAddress
    },
    trustedProxies: http.trustedProxies,
  }
  const proxyProtocol = openProxyProtocol(http.proxyProtocolFrom, 'http', { clock, log })
  const listeners: Listener[] = []
  const everyListen = [
    ...http.listen,
    ...http.listenTls,
    ...http.publicListen,
    ...http.publicListenTls,
    ...http.redirectListen,
  ]
  const close = async (graceMs: number): Promise<void> => {
    await Promise.all(listeners.map(listener => listener.close(graceMs)))
  }
  const withChallenges = (handler: HttpHandler) => challenges?.before(handler) ?? handler
  const listen = async (addresses: readonly ListenAddress[], handler: HttpHandler, isSecure = false) => {
    const bound: ListenAddress[] = []
    const answering = withChallenges(isSecure ? withStrictTransport(handler, certificate) : handler)
    for (const address of markIpv6Only(addresses, everyListen)) {
      const listener = isSecure
        ? await listenHttps(address, answering, limits, clock, () => certificate.pair(), proxyProtocol)
        : await listenHttp(address, answering, limits, clock, proxyProtocol)
      listeners.push(listener)
      bound.push(listener.address)
    }
    return bound
  }
  const isApart = http.publicListen.length + http.publicListenTls.length > 0
  const beside = isApart ? api : servedTogether(api, pages)
  try {
    return {
      addresses: {
        http: await listen(http.listen, beside),
        https: await listen(http.listenTls, beside, true),
        public: await listen(http.publicListen, pages),
        publicTls: await listen(http.publicListenTls, pages, true),
        redirect: await listen(http.redirectListen, httpRedirect(publicUrl, pages)),
      },
      get connections() {
        return listeners.reduce((sum, { connections }) => sum + connections, 0)
      },
      close,
    }
  } catch (error) {
    await close(0)
    throw error
  }
}

/** Browsers then refuse plain HTTP and certificate exceptions, so not with a self-signed certificate that users had to accept. */
function withStrictTransport(handler: HttpHandler, certificate: TlsCertificate): HttpHandler {
  return {
    handle(request, response) {
      if (!certificate.isSelfSigned)
        response.setHeader('Strict-Transport-Security', `max-age=${YEAR_SECONDS}`)
      return handler.handle(request, response)
    },
    answerFault: (fault, address) => handler.answerFault(fault, address),
  }
}
