// Reads worlds and questions as JSON lines from standard input; writes a line of answers for each world, `1` for allowed.
import { createValidatedPolicy, validateIdentityPolicy, validateResourcePolicy } from '@cloud-copilot/iam-policy'
import { anonymousPrincipal, runSimulation } from '@cloud-copilot/iam-simulate'
import { createInterface } from 'node:readline'

let world

// A policy is validated once and not for each question, which takes most of the time otherwise.
const validated = new WeakMap()
const once = (policy, validate) => {
  if (!validated.has(policy)) validated.set(policy, createValidatedPolicy(policy, validate))
  return validated.get(policy)
}

function simulation({ who, what, action, context }) {
  const principal = world.principals[who]
  const resource = world.resources[what]
  const anonymous = principal.kind === 'anonymous'
  const named = (documents) => documents.map((policy, at) => ({ name: `policy-${at}`, policy: once(policy, validateIdentityPolicy) }))
  const session = principal.service ?? `arn:aws:sts::${principal.account}:assumed-role/${principal.role}/session`
  const who_is = anonymous || principal.service ? {} : {
    'aws:PrincipalArn': `arn:aws:iam::${principal.account}:role/${principal.role}`,
    'aws:PrincipalAccount': principal.account,
    'aws:CurrentTime': '2026-11-01T01:00:00Z',
    'aws:TokenIssueTime': '2026-11-01T00:30:00Z',
  }
  return {
    request: {
      principal: anonymous ? anonymousPrincipal : session,
      action,
      resource: { resource: resource.arn, accountId: resource.account },
      contextVariables: { ...who_is, ...principal.context, ...context },
    },
    identityPolicies: anonymous || principal.service ? [] : named(principal.identity),
    serviceControlPolicies: [],
    resourceControlPolicies: [],
    resourcePolicy: resource.policy ? once(resource.policy, validateResourcePolicy) : undefined,
    permissionBoundaryPolicies: !anonymous && principal.boundary?.length ? named(principal.boundary) : undefined,
  }
}

let answers = []
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const said = JSON.parse(line)
  if (said.principals) {
    world = said
  } else if (said.end) {
    process.stdout.write(answers.join('') + '\n')
    answers = []
  } else {
    const result = await runSimulation(simulation(said), {})
    if (result.resultType === 'error') throw new Error(`${line}: ${JSON.stringify(result.errors)}`)
    answers.push(result.overallResult === 'Allowed' ? '1' : '0')
  }
}
