/** Opens the control socket, HTTP, SMTP and DNS. From here on requests arrive. */
import { keptAnswers } from '../../accounts/idempotency-store.js'
import { keyAuthenticator } from '../../accounts/keys.js'
import { openOperatorAccess } from '../../accounts/operators/access.js'
import { baseUrl } from '../../config/config.js'
import { withConsole } from '../../console/console-app.js'
import { VERSION } from '../../core/version.js'
import { buildApp, type OnWrite } from '../../http/app.js'
import { documentationRoutes } from '../../http/openapi/routes.js'
import { buildPublicApp, type PublicApp } from '../../http/public/public-app.js'
import type { PublicRoute } from '../../http/public/public-route.js'
import { servedTogether } from '../../http/public/served-together.js'
import type { Route } from '../../http/route.js'
import type { OpenWindow } from '../../http/sliding-window.js'
import { openLinkKeys } from '../../mail/links/link-keys.js'
import { openVisits, visitPages } from '../../tracking/visits/visit-handler.js'
import type { HttpHandler } from '../../world/net/http-connections.js'
import type { Appliance } from '../appliance.js'
import { controlSocketPath, openControl } from '../listeners/control.js'
import { openHttpListeners } from '../listeners/http-listeners.js'
import { openMailListeners } from '../listeners/mail-listeners.js'
import { openNameListeners } from '../listeners/name-listeners.js'
import type { Certificates } from '../open-certificates.js'
import type { Meters } from '../open-metrics.js'
import { CHAPTERS, OUTGOING } from '../resources.js'
import type { DeliveryPhase } from './delivery.js'
import type { IntakePhase } from './intake.js'
import type { MembershipPhase } from './membership.js'
import type { ResourcesPhase } from './resources.js'
import type { StoragePhase } from './storage.js'
import type { ThreadsPhase } from './threads.js'

export type ListenersPhase = Awaited<ReturnType<typeof openListeners>>

interface Given
  extends StoragePhase, MembershipPhase, ThreadsPhase, IntakePhase, DeliveryPhase, ResourcesPhase {
  readonly certificates: Certificates
}

/** @throws Error naming an address that cannot be bound */
export async function openListeners(given: Given, closing: AsyncDisposableStack) {
  const { appliance, meters, signals, graceLeft, openWindow, resources, certificates } = given
  const { config, world, database, linkSecrets } = appliance
  const routes = resources.flatMap(one => one.routes ?? [])
  const onWrite: OnWrite = (path, workspaceId) => given.liveChanges.wrote(path, workspaceId)
  const api = openApi(appliance, routes, meters, onWrite, openWindow)
  const visits = await openVisits({
    ...world,
    database,
    keys: openLinkKeys(linkSecrets),
    trustedProxies: config.http.trustedProxies,
    onEvents: signals.appended.emit,
  })
  closing.defer(() => visits.close())
  const publicRoutes = [...resources.flatMap(({ pages = [] }) => pages), ...visitPages]
  const pages = visits.before(openPages(appliance, openWindow, publicRoutes))
  const shownInConsole = publicRoutes.filter(({ isBesideApi }) => isBesideApi)
  const besideApi = servedTogether(api, openPages(appliance, openWindow, shownInConsole))
  const control = await openControl(appliance, controlSocketPath(config.dataDir), routes, onWrite)
  closing.defer(() => control.close(graceLeft()))
  const http = await openHttpListeners(appliance.live, besideApi, pages, certificates, world)
  closing.defer(() => http.close(graceLeft()))
  const mail = await openMailListeners(
    appliance,
    certificates.certificate,
    { ...given.submit, renderQueue: given.renderQueue },
    given.inbound,
    given.guard,
    meters.acceptance.onAccepted,
  )
  closing.defer(() => mail.close(graceLeft()))
  const names = await openNameListeners(appliance, certificates.challenges?.zone)
  closing.defer(() => names.close())
  return { visits, http, mail, names }
}

function openApi(
  { config, live, world, database, newId, box }: Appliance,
  routes: readonly Route[],
  { acceptance }: Meters,
  onWrite: OnWrite,
  openWindow: OpenWindow | undefined,
): HttpHandler {
  const api = buildApp(
    {
      ...world,
      newId,
      authenticate: keyAuthenticator(database, world.clock),
      operators: openOperatorAccess({ ...world, database }),
      publicUrl: config.publicUrl,
      trustedProxies: config.http.trustedProxies,
      get anonymousRateLimit() {
        return live.current.http.anonymousRateLimit
      },
      keptAnswers: keptAnswers(database, box),
      onAnswer: acceptance.onAnswer,
      onWrite,
      openWindow,
    },
    [
      ...routes,
      ...documentationRoutes(routes, {
        version: VERSION,
        origin: baseUrl(config),
        chapters: CHAPTERS,
        outgoing: OUTGOING,
      }),
    ],
  )
  return withConsole(api)
}

function openPages(
  { config, world, newId }: Appliance,
  openWindow: OpenWindow | undefined,
  pages: readonly PublicRoute[],
): PublicApp {
  const { publicRateLimit: rateLimit, trustedProxies } = config.http
  return buildPublicApp({ ...world, newId, rateLimit, trustedProxies, openWindow }, pages)
}
