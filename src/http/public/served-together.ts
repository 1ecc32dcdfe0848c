/**
 * Serves the API and the public pages on the same listeners, chosen by path.
 *
 * Used by the composition root if `http.public_listen` is empty. Fails: never; unknown paths go to the API, which refuses them.
 */
import type { HttpHandler } from '../../world/net/http-connections.js'
import type { PublicApp } from './public-app.js'

export function servedTogether(api: HttpHandler, pages: PublicApp): HttpHandler {
  return {
    handle: (request, response) => (pages.serves(request) ? pages : api).handle(request, response),
    answerFault: (fault, address) => api.answerFault(fault, address),
  }
}
