import { oneOf } from '../engine/filter-flags.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { InvalidArgumentError, type Command } from 'commander'
import { findWorkspace } from '../tenants/tenants.ts'
import { check } from './check.ts'
import { addDeploying } from './deploy.ts'
import { findItem } from './versioned-item.ts'
import { diffPolicy, listPolicies, showPolicy } from './list.ts'
import { testPolicies } from './test.ts'
import { initPolicies } from './init.ts'
import { proposePolicy } from './propose.ts'
import { askFlow, simulatePolicy } from './simulate.ts'
import { createPolicy, pushPolicy } from './write.ts'
import { addLife } from '../data/archive.ts'
import { asOperator, inEnvironment, wholeNumber, withJson } from '../engine/options.ts'
import { GRANT_RULES, ON_ERRORS, POLICY_ACTIONS, SEVERITIES } from '@tacho/contract/engine/words.ts'

const LABELS = 'file with labels of tools, as in `tacho.yaml`; default: those of the environment'
const ON_ERROR =
  'act: a condition that cannot be evaluated counts as a match; ignore: it does not. Default: act for BLOCK and REQUIRE_APPROVAL'

export function addPolicies(policies: Command): void {
  addReading(policies)
  addWriting(policies)
  addTrying(policies)
  addDeploying(policies, 'policy', 'policy')

  addLife(policies, {
    noun: 'policy',
    example: 'refunds',
    archiving: 'it can no longer be deployed. Refused while it is deployed',
    restoring: 'it can be deployed again',
    within: 'workspace',
    async find(client, policyName, { workspace }) {
      const { id: workspaceId } = await findWorkspace(client, workspace)
      const { id, name } = await findItem(client, workspaceId, 'policy', policyName)
      return { params: { workspaceId, policyId: id }, name }
    },
    archive: (client, policyRequest) => client.archivePolicy(policyRequest),
    restore: (client, policyRequest) => client.restorePolicy(policyRequest),
  })
}

function addReading(policies: Command): void {
  inWorkspace(policies.command('list').description('list policies and where they are deployed'))
    .option('--archived', 'archived ones too')
    .addHelpText('after', '\nExamples:\n  tacho policies list --workspace acme\n  tacho policies list --archived')
    .action(listPolicies)

  inWorkspace(policies.command('show <policy>').description('show a policy'))
    .option('--number <version>', 'default: the deployed one; the newest if none or several are')
    .option('--history', 'list its versions')
    .addHelpText('after', '\nExample:\n  tacho policies show refunds --number 2')
    .action(showPolicy)

  inWorkspace(
    policies.command('diff <policy> [from] [to]').description('compare two versions; default: the newest two'),
  )
    .addHelpText('after', '\nExamples:\n  tacho policies diff refunds\n  tacho policies diff refunds 2 5')
    .action(diffPolicy)
}

function addWriting(policies: Command): void {
  const about = (command: Command): Command =>
    withSource(inWorkspace(command))
      .option('--severity <severity>', SEVERITIES.join(', '), oneOf(SEVERITIES))
      .option('--action <action>', POLICY_ACTIONS.join(', '), oneOf(POLICY_ACTIONS))
      .option('--on-error <what>', ON_ERROR, oneOf(ON_ERRORS))
      .option('--approvers <number>', '1, or 2 different people who must approve a call', peopleNumber)
      .option(
        '--grants <rule>',
        'allow or never: whether approvers may also allow calls to come; default: never with severity CRITICAL',
        oneOf(GRANT_RULES),
      )
      .option(
        '--template <text>',
        'how a request reads, such as "Refund **{amount} {currency}** · {order_id}"; "" removes it',
      )
      .option('--name <text>', 'display name')
      .option('--description <text>', 'purpose of the policy')
      .option('--message <text>', 'what the policy says to the model and the approver; "" removes it')
      .option('--note <text>', 'what changed, and why')

  about(policies.command('create <policyId>').description('create a policy with its first version'))
    .addHelpText(
      'after',
      '\nExample:\n  tacho policies create refunds --file refunds.cel --severity HIGH --action REQUIRE_APPROVAL',
    )
    .action(createPolicy)

  about(policies.command('push <policy>').description('write a new version, without deploying it'))
    .addHelpText(
      'after',
      '\nOptions you leave out keep their values from the newest version.\n\nExample:\n  tacho policies push refunds --file refunds.cel --note "Only large ones"',
    )
    .action(pushPolicy)
}

function addTrying(policies: Command): void {
  inEnvironment(
    policies.command('init [set]').description('write a ready set of policies with examples; without a set: list them'),
  )
    .option('-d, --directory <folder>', 'where to write', '.')
    .option('--days <number>', 'with --environment: days to simulate', wholeNumber(LIMITS.simulationDaysMax), 7)
    .addHelpText(
      'after',
      `
The files are yours to change: the names of your tools are in \`labels\`. Nothing is sent or deployed. With --environment,
each policy is simulated on the recorded calls there, with the labels of the file.

Examples:
  tacho policies init
  tacho policies init trifecta --environment acme/production`,
    )
    .action(initPolicies)

  inEnvironment(
    policies.command('check [file...]').description('check conditions without a server; - reads standard input'),
  )
    .option('--condition <expression>', 'the condition itself')
    .addHelpText(
      'after',
      '\nThe exit code is 1 if a condition is invalid. With --environment, fields and tools are compared with its recorded calls of 30 days.\n\nExamples:\n  tacho policies check policies/*.cel\n  tacho policies check refunds.cel --environment acme/production\n  tacho policies check --condition \'tool.name == "refund"\'',
    )
    .action(check)

  withJson(
    policies.command('test [examples]').description('decide example calls by the policies of a file, without a server'),
  )
    .option('-f, --file <file>', 'file with the policies, as for `tacho apply`', 'tacho.yaml')
    .option('--junit <file>', 'also write the results as JUnit XML')
    .addHelpText(
      'after',
      `
The examples are YAML or JSON, by default policies.test.yaml beside the file:

  - name: a large refund asks a person  # optional
    # also: server, annotations, agent, run, session, risk, now
    tool: refund_payment
    input: { amount: 500 }
    # optional: the past of the run; labels are those of the file
    past:
      - said: Refund order 7
      - { tool: read_order, input: { id: 7 }, output: { paid: 500 } }
    # or ALLOW, WARN, BLOCK
    expect: REQUIRE_APPROVAL
    # optional: exactly the policies that match
    policies: [refunds]

Exit codes: 0 all are decided as expected; 1 one is not; 2 a file is invalid.

Examples:
  tacho policies test
  tacho policies test policies/examples.yaml -f tacho.yaml --junit policies.xml`,
    )
    .action(testPolicies)

  withSource(inEnvironment(policies.command('simulate [policy]').description('try a policy on recorded tool calls')))
    .option('--number <version>', 'version of the policy; default: the newest')
    .option(
      '--severity <severity>',
      `${SEVERITIES.join(', ')}; default: the policy's, or MEDIUM for a condition`,
      oneOf(SEVERITIES),
    )
    .option('--action <action>', POLICY_ACTIONS.join(', '), oneOf(POLICY_ACTIONS))
    .option('--on-error <what>', ON_ERROR, oneOf(ON_ERRORS))
    .option('--labels <file>', LABELS)
    .option('--days <number>', 'days to look back', wholeNumber(LIMITS.simulationDaysMax), 7)
    .addHelpText(
      'after',
      `
A condition on the past of the run is evaluated over whole runs. Calls that depend on what is not recorded are counted
as unknown. Ctrl-C cancels the simulation. Nothing is deployed.

Examples:
  tacho policies simulate refunds --environment acme/production --days 30
  tacho policies simulate --file refunds.cel --action BLOCK
  tacho policies simulate --condition 'tool.name == "refund_payment"' --action REQUIRE_APPROVAL --json`,
    )
    .action(simulatePolicy)

  inEnvironment(
    policies
      .command('propose <policy>')
      .description('the narrower condition that asks least and keeps every rejection, from what people decided'),
  )
    .option('--days <number>', 'days to look back', wholeNumber(92), 30)
    .addHelpText(
      'after',
      `
It looks for a limit of a number or a list of texts in the input, or two of them together. Nothing is changed.

Example:
  tacho policies propose refunds --environment acme/production --days 60`,
    )
    .action(proposePolicy)

  inEnvironment(
    policies.command('flow').description('whether values of one tool reached another tool, in the recorded runs'),
  )
    .option('--from <tool>', 'the tool that returned them; one * stands for any characters')
    .option('--from-label <label>', 'or the label of its output')
    .option('--to <tool>', 'the tool in whose input they are; one * stands for any characters')
    .option('--to-label <label>', 'or the label of what it does')
    .option('--where <condition>', 'only calls of that tool where this condition holds')
    .option('--labels <file>', LABELS)
    .option('--days <number>', 'days to look back', wholeNumber(LIMITS.simulationDaysMax), LIMITS.simulationDaysMax)
    .addHelpText(
      'after',
      `
Values are found as by origin() in a condition. One that the user said too is not counted.

Examples:
  tacho policies flow --from read_mail --to 'send_*' --where '!tool.input.to.endsWith("@example.com")'
  tacho policies flow --from-label private --to-label external --days 7`,
    )
    .action(askFlow)
}

function peopleNumber(text: string): 1 | 2 {
  if (text !== '1' && text !== '2') throw new InvalidArgumentError('It must be 1 or 2.')
  return text === '2' ? 2 : 1
}

function inWorkspace(command: Command): Command {
  return asOperator(command).option('-w, --workspace <workspace>', 'name or id; optional if there is only one')
}

function withSource(command: Command): Command {
  return command
    .option('-f, --file <file>', 'file with the condition; - reads standard input')
    .option('--condition <expression>', 'the condition itself')
}
