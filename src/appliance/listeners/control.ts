/**
 * The control socket, through which commands use the API of the running server.
 *
 * Part of the composition root, opened by `phases/listeners.ts`; the client is `cli/api.ts`. HTTP over a Unix socket in the data folder; file
 * permissions are the only access control, and every caller has full control. Fails as `world/net/local-socket.ts` does.
 */
import { join } from 'node:path'
import { keptAnswers } from '../../accounts/idempotency-store.js'
import { openOperatorAccess } from '../../accounts/operators/access.js'
import type { Appliance } from '../appliance.js'
import { AppError } from '../../core/errors.js'
import { buildApp, type OnWrite } from '../../http/app.js'
import type { Route } from '../../http/route.js'
import { listenLocal, type LocalListener } from '../../world/net/local-socket.js'

export function controlSocketPath(dataDir: string): string {
  return join(dataDir, 'control.sock')
}

/** @param path of the socket */
export function openControl(
  { world, newId, database, box }: Pick<Appliance, 'world' | 'newId' | 'database' | 'box'>,
  path: string,
  routes: readonly Route[],
  onWrite: OnWrite = () => {},
): Promise<LocalListener> {
  const app = buildApp(
    {
      ...world,
      newId,
      serves: 'control',
      authenticate: () =>
        Promise.reject(new AppError('unauthorized', 'the control socket does not accept keys')),
      operators: openOperatorAccess({ ...world, database }),
      keptAnswers: keptAnswers(database, box),
      anonymousRateLimit: 0,
      onWrite,
    },
    routes,
  )
  return listenLocal(path, (request, response) => void app.handle(request, response), world.clock)
}
