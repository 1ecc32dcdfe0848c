/**
 * The control socket: how commands beside the running server ask it for what it holds only in memory, or change that.
 *
 * Part of the composition root, opened by `server.ts`; `cli/running-server.ts` is the other end. A Unix socket in the data
 * folder that speaks HTTP, so that its routes are declared as all others are; who may open it needs no key, and nobody else can
 * come to it. Routes of access `control` are served here and nowhere else. Fails: as `world/net/local-socket.ts` does.
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
      authenticate: () => Promise.reject(new AppError('unauthorized', 'the control socket takes no key')),
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
