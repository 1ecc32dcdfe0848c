/**
 * What port 80 says where everything else speaks TLS: that one should come to `public_url`.
 *
 * Served on `http.redirect_listen` alone. Only what reads is led on; who sends something in clear has said it to everybody on the way, and
 * is told so instead of being helped to do it again. Standard: RFC 9110 §15.4.9. Fails: never.
 */
import type { HttpHandler } from '../world/net/http-connections.js'

/** @param faults says what is said to whoever speaks no HTTP */
export function httpRedirect(publicUrl: string, faults: Pick<HttpHandler, 'answerFault'>): HttpHandler {
  const { origin } = new URL(publicUrl)
  return {
    handle({ url = '/', method, headers }, response) {
      const isRead = method === 'GET' || method === 'HEAD'
      const saysSecret = headers.authorization !== undefined
      response.setHeader('Cache-Control', 'no-store')
      response.setHeader('Content-Type', 'text/plain; charset=utf-8')
      if (!isRead || saysSecret) {
        response.writeHead(403, { Connection: 'close' })
        response.end('this port does not take requests in clear: use https\n')
      } else {
        // Of the request its path alone, which cannot name another host (a second slash would).
        const path = `/${url.replace(/^[a-z]+:\/\/[^/]*/i, '').replace(/^[/\\]+/, '')}`
        response.writeHead(308, { Location: origin + path })
        response.end()
      }
      return Promise.resolve()
    },
    answerFault: (fault, address) => faults.answerFault(fault, address),
  }
}
