/** `postroad login unlock ADDRESS`: clears the failed logins of a client address on the running server. */
import type { Command } from 'commander'
import { AppError } from '../../core/errors.js'
import { LOGIN_UNLOCK_PATH } from '../../msa/submission/login-guard.js'
import { ipVersion } from '../../world/net/ip-address.js'
import {
  command,
  printResult,
  UsageError,
  withAppliance,
  type CliContext,
  type CommonOptions,
} from '../context.js'
import { askServer } from '../running-server.js'

export function loginCommands(program: Command, context: CliContext): void {
  const group = program.command('login').description('SMTP logins')
  command(group, 'unlock <address>', 'clear the failed logins of an IP address').action(
    async (address: string, options: CommonOptions) => {
      if (ipVersion(address) === 0) throw new UsageError(`${address} is not a valid IP address`)
      await withAppliance(context, options, async appliance => {
        const answer = await askServer(appliance, 'POST', LOGIN_UNLOCK_PATH, { address })
        // Failed logins are only kept in the server's memory.
        if (answer.trouble !== null) throw new AppError('unavailable', answer.trouble)
        const { unlocked } = answer.data as { unlocked: boolean }
        printResult(context, options, { unlocked }, () =>
          unlocked ? `${address} may log in again` : `${address} has no failed logins`,
        )
      })
    },
  )
}
