/**
 * The composition root: opens the parts of the appliance in phases, each of which receives what the earlier ones returned.
 *
 * A phase registers with `closing` how its parts are closed, and closing goes backwards. So the server stops in this order:
 *
 *   background   tells the other nodes to take over; ends jobs and long operations of resources
 *   listeners    DNS, SMTP, HTTP, control socket: accept nothing more, finish open requests; then visits are stored
 *   delivery     deliveries end or are abandoned; then the sandbox
 *   resources    inbound mail that is being processed is finished; then event consumers finish their batch
 *   threads      composing, calls to URLs of workspaces, delivery threads
 *   membership   shared limits; then this node leaves, since all of the above still writes
 *   storage      the database; then the lock on the data folder
 *
 * A part tells another one that opens later by a signal (`core/signal.ts`; all are in `phases/storage.ts`).
 */
import { isDeepStrictEqual } from 'node:util'
import { applyReload } from './appliance/apply-reload.js'
import type { HttpAddresses } from './appliance/listeners/http-listeners.js'
import type { MailAddresses } from './appliance/listeners/mail-listeners.js'
import { openCertificates, type Certificates } from './appliance/open-certificates.js'
import { openAgent } from './appliance/open-delivery.js'
import { startBackground } from './appliance/phases/background.js'
import { openDelivery, startDelivery, type DeliveryPhase } from './appliance/phases/delivery.js'
import { openIntake } from './appliance/phases/intake.js'
import { openListeners, type ListenersPhase } from './appliance/phases/listeners.js'
import { openMembership } from './appliance/phases/membership.js'
import { openServerResources } from './appliance/phases/resources.js'
import { openStorage, type StoragePhase } from './appliance/phases/storage.js'
import { openThreads, type ThreadsPhase } from './appliance/phases/threads.js'
import type { Config } from './config/config.js'
import type { Settings } from './config/settings.js'
import type { ListenAddress } from './world/net/listen.js'
import type { World } from './world/world.js'

export interface Server extends AsyncDisposable {
  /** Resolves if other nodes removed this one. It can store nothing any more, so the process has to end. */
  readonly removed: Promise<void>
  /** Addresses each listener actually bound. */
  readonly addresses: ServerAddresses
  /**
   * Applies the reloadable keys (`config/reload.ts`) and reloads the certificate.
   *
   * @throws Error naming the unusable certificate file; nothing changes then
   */
  reload(next: Config): Promise<void>
}

export interface ServerAddresses extends MailAddresses, HttpAddresses {
  readonly dns: readonly ListenAddress[]
}

/**
 * Resolves once all listeners are open; disposing drains within `shutdown_grace`.
 *
 * @param settings shown by `GET /configuration`
 * @param onStarting told what takes long at start, in one line
 * @throws LockedError, NotInitialisedError, SchemaError, Error naming an address that cannot be bound
 */
export async function openServer(
  config: Config,
  world: World,
  settings?: Settings,
  onStarting: (status: string) => void = () => undefined,
): Promise<Server> {
  const closing = new AsyncDisposableStack()
  try {
    const storage = await openStorage({ config, world, onStarting }, closing)
    const node = openMembership(storage, closing)
    const threads = openThreads(storage, closing)
    const delivery = openDelivery({ ...storage, ...node, ...threads })
    const intake = await openIntake({ ...storage, ...node, ...threads, ...delivery })
    const certificates = await openCertificates(storage.appliance, () => node.membership.members)
    const opened = { ...storage, ...node, ...threads, ...intake, ...delivery, certificates }
    const resources = openServerResources({ ...opened, settings }, closing)
    await startDelivery(opened, closing)
    const listeners = await openListeners({ ...opened, ...resources }, closing)
    await startBackground({ ...opened, ...resources, ...listeners }, closing)
    const { http, mail, names } = listeners
    return {
      removed: node.membership.removed,
      addresses: { ...http.addresses, ...mail.addresses, dns: names.addresses },
      reload: next => reload({ ...opened, ...listeners }, next),
      [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose](),
    }
  } catch (error) {
    await closing[Symbol.asyncDispose]()
    throw error
  }
}

interface Reloaded extends StoragePhase, ThreadsPhase, DeliveryPhase, ListenersPhase {
  readonly certificates: Certificates
}

async function reload(
  { appliance, certificates, mail, calls, agent, sites, queue }: Reloaded,
  next: Config,
): Promise<void> {
  await certificates.reload()
  const former = appliance.live.current
  const now = (appliance.live.current = applyReload(appliance.config, next))
  mail.reconfigure(now)
  calls.reload(now)
  if (isDeepStrictEqual(former.mta, now.mta)) return
  agent.replace(openAgent(appliance, now))
  sites.replace(now)
  queue.invalidateSites()
}
