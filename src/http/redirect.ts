/**
 * Redirects plain HTTP to `public_url`; served on `http.redirect_listen` only.
 *
 * Redirects only reads without credentials. Anything else has already been sent in clear text, so it gets an error instead of
 * appearing to work. Standard: RFC 9110 §15.4.9. Fails: never.
 */
import type { HttpHandler } from '../world/net/http-connections.js'

/** @param faults answers clients that do not speak HTTP */
export function httpRedirect(publicUrl: string, faults: Pick<HttpHandler, 'answerFault'>): HttpHandler {
  const { origin } = new URL(publicUrl)
  return {
    handle({ url = '/', method, headers }, response) {
      const isRead = method === 'GET' || method === 'HEAD'
      const hasCredentials = headers.authorization !== undefined
      response.setHeader('Cache-Control', 'no-store')
      response.setHeader('Content-Type', 'text/plain; charset=utf-8')
      if (!isRead || hasCredentials) {
        response.writeHead(403, { Connection: 'close' })
        response.end('this port only redirects to https; send the request there\n')
      } else {
        // Only the path of the request is used; a second slash could name another host.
        const path = `/${url.replace(/^[a-z]+:\/\/[^/]*/i, '').replace(/^[/\\]+/, '')}`
        response.writeHead(308, { Location: origin + path })
        response.end()
      }
      return Promise.resolve()
    },
    answerFault: (fault, address) => faults.answerFault(fault, address),
  }
}
