// Reads worlds and questions as JSON lines from standard input; writes a line of answers for each world, `1` for allowed.
//
// Most of the simulator's time goes into the kind of the resource, and into statements about other actions or resources.
// Both depend on the question's action and resource, so they are found once for each. One question in `SAMPLE` is decided
// without either, and compared.
import { createValidatedPolicy, validateEndpointPolicy, validateIdentityPolicy, validateResourcePolicy } from '@cloud-copilot/iam-policy'
import { anonymousPrincipal, runSimulation, runUnsafeSimulation } from '@cloud-copilot/iam-simulate'
import { createInterface } from 'node:readline'

const SAMPLE = 199

// The simulator compares names by the rules of languages, which takes a fifth of its time; names in IAM are ASCII.
const { localeCompare } = String.prototype
String.prototype.localeCompare = function (other, locales, options) {
  if (options?.sensitivity !== 'accent') return localeCompare.call(this, other, locales, options)
  return this.toLowerCase() === other.toLowerCase() ? 0 : 1
}

const OPTIONS = {}
let world
let asked = 0

const cached = (cache, key, make) => {
  if (!cache.has(key)) cache.set(key, make())
  return cache.get(key)
}

// Equal policies become one object, so that what is found for one is found for all, in later worlds too. Of many worlds
// most policies are never seen again: then all are forgotten.
const MANY = 4000
const policies = new Map()
const shared = (policy) => cached(policies, JSON.stringify(policy), () => policy)
function sharing(world) {
  if (policies.size > MANY) policies.clear()
  for (const principal of Object.values(world.principals)) {
    for (const kind of ['identity', 'boundary']) principal[kind] = principal[kind]?.map(shared)
    for (const [name, policy] of Object.entries(principal.endpoints ?? {})) principal.endpoints[name] = shared(policy)
  }
  for (const resource of Object.values(world.resources)) resource.policy = resource.policy && shared(resource.policy)
  return world
}

const validated = new WeakMap()
const once = (policy, validate) => cached(validated, policy, () => createValidatedPolicy(policy, validate, { name: 'policy' }))

const listed = (value) => [value].flat()
const patterns = new Map()
const matcher = (pattern) => cached(patterns, pattern, () => {
  const parts = pattern.split('*').map((part) => part.replace(/[.+^${}()|[\]\\]/g, '\\$&').replaceAll('?', '.'))
  return new RegExp(`^${parts.join('.*')}$`, 'i')
})
const matches = (pattern, name) => matcher(pattern).test(name)
const isAbout = (statement, action) =>
  'Action' in statement
    ? listed(statement.Action).some((pattern) => matches(pattern, action))
    : !listed(statement.NotAction).some((pattern) => matches(pattern, action))
// A wildcard covers colons here and a variable covers everything, so no statement is left out that names the resource.
const mayName = (statement, arn) =>
  !('Resource' in statement) ||
  listed(statement.Resource).some((pattern) => matches(pattern.replace(/\$\{[^}]*\}/g, '*'), arn))

// The statements of a policy that are about an action and may name a resource; `null` when there are none. Many
// questions have the same ones.
const reduced = new WeakMap()
const inMap = () => new Map()
function about(policy, action, arn) {
  const kept = cached(reduced, policy, () => ({ byAction: inMap(), byPlaces: inMap() }))
  const { statements, byArn } = cached(kept.byAction, action, () => ({
    statements: [...listed(policy.Statement).entries()].filter(([, statement]) => isAbout(statement, action)),
    byArn: inMap(),
  }))
  return cached(byArn, arn, () => {
    const asked = statements.filter(([, statement]) => mayName(statement, arn))
    return cached(kept.byPlaces, asked.map(([at]) => at).join(), () => {
      const Statement = asked.map(([, statement]) => statement)
      return asked.length === 0 ? null : createValidatedPolicy({ ...policy, Statement }, validateIdentityPolicy)
    })
  })
}

function simulation({ who, what, action, context }, policyOf) {
  const principal = world.principals[who]
  const resource = world.resources[what]
  const anonymous = principal.kind === 'anonymous'
  const isRole = !anonymous && !principal.service
  const named = (documents) =>
    documents.map((policy, at) => ({ name: `policy-${at}`, policy: policyOf(policy, action, resource.arn) })).filter(({ policy }) => policy)
  const session = principal.service ?? `arn:aws:sts::${principal.account}:assumed-role/${principal.role}/session`
  const who_is = !isRole ? {} : {
    'aws:PrincipalArn': `arn:aws:iam::${principal.account}:role/${principal.path ?? ''}${principal.role}`,
    'aws:PrincipalAccount': principal.account,
    'aws:CurrentTime': '2026-11-01T01:00:00Z',
    'aws:TokenIssueTime': '2026-11-01T00:30:00Z',
  }
  // A boundary that says nothing of an action denies it: it stays whole.
  const boundary = isRole && principal.boundary?.length ? named(principal.boundary) : undefined
  const silent = boundary?.length === 0
  return {
    request: {
      principal: anonymous ? anonymousPrincipal : session,
      action,
      resource: { resource: resource.arn, accountId: resource.account },
      contextVariables: { ...who_is, ...principal.context, ...context },
    },
    identityPolicies: isRole ? named(principal.identity) : [],
    serviceControlPolicies: [],
    resourceControlPolicies: [],
    resourcePolicy: resource.policy ? once(resource.policy, validateResourcePolicy) : undefined,
    permissionBoundaryPolicies: silent
      ? principal.boundary.map((policy, at) => ({ name: `policy-${at}`, policy: once(policy, validateIdentityPolicy) }))
      : boundary,
    ...(principal.session && isRole ? { sessionPolicy: once(principal.session, validateIdentityPolicy) } : {}),
  }
}

// The endpoint of a question, whose policy decides too. Only the whole simulation knows policies of endpoints.
function throughEndpoint({ who, what }) {
  const resource = world.resources[what]
  const policy = world.principals[who].endpoints?.[resource.through]
  return policy && { name: 'endpoint', policy: once(policy, validateEndpointPolicy), account: resource.account }
}

async function decideWhole(question, policyOf = (policy) => once(policy, validateIdentityPolicy)) {
  const endpoint = throughEndpoint(question)
  const asking = simulation(question, policyOf)
  if (endpoint) {
    asking.vpcEndpointPolicies = [endpoint]
    asking.request.contextVariables['aws:ResourceAccount'] = endpoint.account
  }
  const result = await runSimulation(asking, OPTIONS)
  if (result.resultType === 'error') throw new Error(`${JSON.stringify(question)}: ${JSON.stringify(result.errors)}`)
  return result
}

// The context keys that an action does not have, by action, resource and keys. They depend on nothing else.
const ignored = new Map()

async function decide(question) {
  const { who, what, action } = question
  const resource = world.resources[what].arn
  // `runUnsafeSimulation` knows neither session policies nor policies of endpoints nor patterns.
  const isPlain = !resource.includes('*') && !world.principals[who].session && !world.principals[who].endpoints
  if (!isPlain) return (await decideWhole(question)).overallResult
  const asking = simulation(question, about)
  const context = asking.request.contextVariables
  const key = `${action} ${resource} ${Object.keys(context)}`
  if (!ignored.has(key)) {
    const first = await decideWhole(question, about)
    ignored.set(key, first.result.ignoredContextKeys)
    return first.overallResult
  }
  for (const other of ignored.get(key)) delete context[other]
  const result = runUnsafeSimulation(asking, OPTIONS)
  asked += 1
  if (asked % SAMPLE === 0) {
    const whole = (await decideWhole(question)).overallResult
    if (whole !== result) throw new Error(`${JSON.stringify(question)}: ${whole} when asked whole, and ${result} when not`)
  }
  return result
}

let answers = []
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const message = JSON.parse(line)
  if (message.principals) {
    world = sharing(message)
  } else if (message.end) {
    process.stdout.write(answers.join('') + '\n')
    answers = []
  } else {
    answers.push((await decide(message)) === 'Allowed' ? '1' : '0')
  }
}
