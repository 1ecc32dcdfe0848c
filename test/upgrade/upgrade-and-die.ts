/**
 * Upgrades the installation whose configuration its parent sends, as `serve` does, and kills itself when the upgrade reports an event:
 * `upgrade-and-die KIND NUMBER`, the first event of a kind being 1.
 */
import { openAppliance } from '../../src/appliance/appliance.js'
import type { Config } from '../../src/config/config.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { systemWorld } from '../../src/world/world.js'

const [kind = '', number = ''] = process.argv.slice(2)
let seen = 0

process.once('message', (config: Config) => {
  void openAppliance({
    config,
    world: { ...systemWorld(), log: new FakeLog() },
    mayMigrate: true,
    onUpgrade(event) {
      if (event.kind === kind) seen += 1
      if (seen === Number(number)) process.kill(process.pid, 'SIGKILL')
    },
  })
})
