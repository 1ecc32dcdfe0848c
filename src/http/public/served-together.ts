/**
 * API and public pages on the same listeners, each by its own rules: which it is tells the path.
 *
 * Called by the composition root where `http.public_listen` is empty. Fails: never; what is neither is the API's to refuse.
 */
import type { HttpHandler } from '../../world/net/http-connections.js'
import type { PublicApp } from './public-app.js'

export function servedTogether(api: HttpHandler, pages: PublicApp): HttpHandler {
  return {
    handle: (request, response) => (pages.serves(request) ? pages : api).handle(request, response),
    answerFault: (fault, address) => api.answerFault(fault, address),
  }
}
