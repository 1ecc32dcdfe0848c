/**
 * The control socket, through which commands read or change state that only exists in the running server's memory.
 *
 * Part of the composition root, opened by `server.ts`; the client is `cli/running-server.ts`. HTTP over a Unix socket in the data folder;
 * file permissions are the only access control. Only this socket serves routes with access `control`. Fails as `world/net/local-socket.ts`
 * does.
 */
import { join } from 'node:path'
import type { Appliance } from '../appliance.js'
import { AppError } from '../../core/errors.js'
import { buildApp } from '../../http/app.js'
import type { Route } from '../../http/route.js'
import { listenLocal, type LocalListener } from '../../world/net/local-socket.js'

export function controlSocketPath(dataDir: string): string {
  return join(dataDir, 'control.sock')
}

export function openControl(
  { config, world, newId }: Pick<Appliance, 'config' | 'world' | 'newId'>,
  routes: readonly Route[],
): Promise<LocalListener> {
  const app = buildApp(
    {
      ...world,
      newId,
      serves: 'control',
      authenticate: () =>
        Promise.reject(new AppError('unauthorized', 'the control socket does not accept keys')),
      anonymousRateLimit: 0,
    },
    routes,
  )
  return listenLocal(
    controlSocketPath(config.dataDir),
    (request, response) => void app.handle(request, response),
    world.clock,
  )
}
