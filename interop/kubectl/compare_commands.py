"""The commands that compare.py gives to k1s and to kubectl, and the objects and files that they find."""

MANIFESTS = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  labels: {app: web, tier: front}
  annotations: {note: "a: b", empty: ""}
data:
  number: "12"
  truth: "true"
  lines: "a\\nb\\n"
  indented: "  a\\nb"
  quote: 'it''s "quoted"'
  tab: "a\\tb"
  star: "*"
  date: "2024-01-02"
  html: "<a href='x'>&</a>"
  key10: x
  key9: "y"
---
apiVersion: v1
kind: Secret
metadata: {name: token, labels: {app: web}}
stringData: {password: secret}
---
apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: web}}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "nginx:1", resources: {limits: {cpu: 500m, memory: 1Gi}}}
      - {name: side, image: "busybox:1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, labels: {app: api}}
spec:
  replicas: 10
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      containers:
      - {name: main, image: "api:1"}
"""

TEAMS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crews.compare.example.dev}
spec:
  group: compare.example.dev
  scope: Namespaced
  names: {plural: crews, singular: crew, kind: Crew, shortNames: [cw]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Ready, type: boolean, jsonPath: .spec.ready}
    - {name: Note, type: string, jsonPath: .spec.note, priority: 1}
    schema:
      openAPIV3Schema:
        description: A crew of people.
        type: object
        properties:
          spec:
            description: What is wanted.
            type: object
            required: [size]
            properties:
              size: {type: integer, description: How many people there are in the crew.}
              ready: {type: boolean}
              note: {type: string}
              members: {type: array, items: {type: object, properties: {name: {type: string, description: A name.}}}}
"""

CREW = """\
apiVersion: compare.example.dev/v1
kind: Crew
metadata: {name: red}
spec: {size: 3, ready: true, note: "first\\nsecond", members: [{name: a}, {name: b}]}
"""

EVENTS = """\
apiVersion: v1
kind: Event
metadata: {name: web.1}
involvedObject: {apiVersion: apps/v1, kind: Deployment, name: web, namespace: OWN}
type: Normal
reason: ScalingReplicaSet
message: "Scaled up\\n"
count: 3
firstTimestamp: "2024-01-01T00:00:00Z"
lastTimestamp: "2024-02-01T00:00:00Z"
source: {component: deployment-controller}
---
apiVersion: v1
kind: Event
metadata: {name: api.1}
involvedObject: {apiVersion: apps/v1, kind: Deployment, name: api, namespace: OWN, fieldPath: "spec.x"}
type: Warning
reason: Failed
message: Something long happened to this object.
count: 1
firstTimestamp: "2024-03-01T00:00:00Z"
lastTimestamp: "2024-03-01T00:00:00Z"
source: {component: tests, host: here}
---
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: web.2}
regarding: {apiVersion: apps/v1, kind: Deployment, name: web, namespace: OWN}
type: Warning
reason: New
action: Look
note: of the newer API
eventTime: "2024-01-15T00:00:00.000000Z"
series: {count: 5, lastObservedTime: "2024-01-20T00:00:00.000000Z"}
reportingController: example.dev/tests
reportingInstance: one
"""

READS = [
    ["get", "configmap", "settings"],
    ["get", "cm", "settings", "-o", "yaml"],
    ["get", "cm", "settings", "-o", "json"],
    ["get", "cm/settings", "-o", "yaml", "--show-managed-fields"],
    ["get", "cm/settings", "secret/token"],
    ["get", "cm,secret,deploy"],
    ["get", "deployments"],
    ["get", "deploy", "-o", "wide"],
    ["get", "deploy", "--show-labels"],
    ["get", "deploy", "-L", "app,tier"],
    ["get", "deploy", "--no-headers"],
    ["get", "deploy", "--sort-by=.spec.replicas"],
    ["get", "deploy", "--sort-by={.metadata.name}"],
    ["get", "deploy", "-o", "name"],
    ["get", "deploy,svc", "-o", "name"],
    ["get", "deploy", "-o", "yaml"],
    ["get", "deploy", "-o", "json"],
    ["get", "deploy", "web", "-o", "yaml"],
    ["get", "svc", "web", "-o", "yaml"],
    ["get", "svc"],
    ["get", "svc", "-o", "wide"],
    ["get", "secret", "token", "-o", "jsonpath={.data.password}"],
    ["get", "all"],
    ["get", "all", "-l", "app=web"],
    ["get", "cm", "-l", "app in (web),tier!=back", "-o", "name"],
    ["get", "cm", "--field-selector", "metadata.name=settings"],
    ["get", "cm", "--field-selector", "nope=x"],
    ["get", "cm", "-l", "a b"],
    ["get", "deploy.apps/web"],
    ["get", "deployments.v1.apps", "web"],
    ["get", "Deployment", "web"],
    ["get", "deploy", "-o", "jsonpath={.items[*].metadata.name}"],
    ["get", "deploy", "-o", "jsonpath={range .items[*]}{.metadata.name}{'\\t'}{.spec.replicas}{'\\n'}{end}"],
    ["get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[0]}"],
    ["get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[?(@.name=='side')].image}"],
    ["get", "deploy", "web", "-o", "jsonpath={.nope}"],
    ["get", "deploy", "web", "-o", "jsonpath={.spec"],
    ["get", "deploy", "-o", "jsonpath-as-json={.items[*].metadata.labels}"],
    ["get", "deploy", "-o", "custom-columns=NAME:.metadata.name,IMAGES:.spec.template.spec.containers[*].image,X:.nope"],
    ["get", "deploy", "web", "-o", "custom-columns=L:metadata.labels", "--no-headers"],
    ["get", "deploy", "-o", "nope"],
    ["get", "deploy", "-o", "jsonpath="],
    ["get", "cm", "nope"],
    ["get", "cm", "nope", "settings"],
    ["get", "cm", "nope", "settings", "-o", "name"],
    ["get", "cm", "nope", "--ignore-not-found"],
    ["get", "nope"],
    ["get", "nope.example.dev", "x"],
    ["get", "pods"],
    ["get", "pods", "-o", "name"],
    ["get", "pods", "-o", "json"],
    ["get", "cm", "settings", "-A"],
    ["get", "crews"],
    ["get", "cw", "-o", "wide"],
    ["get", "cw", "red", "-o", "yaml"],
    ["get", "crd", "crews.compare.example.dev", "-o", "name"],
    ["get", "ns", "kube-system", "--show-labels"],
    ["get", "deploy", "web", "--subresource=scale", "-o", "jsonpath={.spec.replicas}"],
    ["get", "--raw", "/version"],
    ["get", "--raw", "/nope"],
    ["api-resources"],
    ["api-resources", "-o", "wide"],
    ["api-resources", "-o", "name", "--namespaced=false"],
    ["api-resources", "--api-group=apps", "--no-headers"],
    ["explain", "deployment"],
    ["explain", "deployment.spec.strategy"],
    ["explain", "pod.spec.containers"],
    ["explain", "pod.spec.containers.imagePullPolicy"],
    ["explain", "pod.spec.containers.resources.limits"],
    ["explain", "pvc.spec.accessModes"],
    ["explain", "service.spec.ports.targetPort"],
    ["explain", "crd.spec.versions.schema.openAPIV3Schema"],
    ["explain", "job.spec", "--recursive"],
    ["explain", "node.status"],
    ["explain", "crew"],
    ["explain", "crew.spec"],
    ["explain", "crew.spec.size"],
    ["explain", "crew.spec.members"],
    ["explain", "crew", "--recursive"],
    ["explain", "crew.nope"],
    ["events"],
    ["wait", "cm/settings", "--for=jsonpath={.data.number}=12"],
    ["wait", "cm/settings", "--for=jsonpath={.data.number}=13", "--timeout=1s"],
    ["wait", "deploy/web", "--for=condition=Available", "--timeout=1s"],
    ["wait", "cm/nope", "--for=condition=Ready", "--timeout=1s"],
    ["wait", "cm/nope", "--for=delete", "--timeout=1s"],
    ["events", "--no-headers"],
    ["events", "-A"],
    ["events", "-o", "name"],
    ["events", "--types=Warning"],
    ["events", "--types=Warning,Normal", "--for=deployment/web"],
    ["events", "--for", "deploy/api", "--types", "warning"],
    ["events", "--for", "cm/settings"],
    ["get", "events"],
    ["get", "events", "-o", "wide"],
    ["get", "events", "--field-selector", "involvedObject.name=web,type=Warning", "-o", "name"],
    ["get", "events.events.k8s.io", "web.2"],
    ["get", "deploy,svc", "-A"],
    ["get", "cm", "-A", "-l", "app=web", "--show-labels"],
    ["get", "cm", "-A", "--field-selector", "metadata.name=settings", "-o", "name"],
    ["get", "crews", "-A", "-o", "wide"],
    ["get", "deploy", "-o", "wide", "--show-labels", "-L", "app"],
    ["get", "cm,secret,deploy", "--show-labels", "--no-headers"],
    ["get", "svc", "--show-kind"],
    ["get", "deploy", "--sort-by=.spec.replicas", "-o", "name"],
    ["get", "deploy", "--sort-by=.spec.replicas", "-o", "jsonpath={.items[*].metadata.name}"],
    ["get", "deploy", "-o", "jsonpath-file=formats/names.jsonpath"],
    ["get", "deploy", "-o", "custom-columns-file=formats/columns.txt"],
    ["get", "deploy", "-o", "custom-columns-file=formats/columns.txt", "--no-headers"],
    ["get", "deploy", "-o", "custom-columns=NAME"],
    ["get", "deploy", "-o", "custom-columns="],
    ["get", "deploy", "web", "api", "-o", "custom-columns=N:.metadata.name", "--sort-by=.metadata.name"],
    ["get", "cm", "--nope"],
    ["nope"],
    ["get"],
    ["get", "cm,nope"],
    ["get", "nope/x"],
    ["get", "deploy", "web", "--subresource=nope"],
    ["get", "deploy", "web", "--subresource=scale"],
    ["get", "cm", "nope", "-o", "yaml"],
    ["get", "-f", "one.yaml"],
    ["get", "-f", "missing.yaml"],
    ["api-resources", "--nope"],
    ["api-resources", "--verbs=create,nope"],
    ["api-resources", "--sort-by=kind", "--api-group=batch"],
    ["wait", "cm/settings"],
    ["wait", "cm/settings", "--for=nope"],
    ["wait", "deploy", "--all", "--for=jsonpath={.metadata.name}", "--timeout=1s"],
]

# kubectl lists them in random order: lines are sorted.
LISTS_IN_ANY_ORDER = [
    ["label", "cm", "settings", "--list"],
    ["label", "cm", "nope", "--list"],
    ["annotate", "cm", "settings", "--list"],
]

# Files are in the working directory; those with a number change what was there before.
CHANGES = [
    ["create", "configmap", "made", "--from-literal=a=b", "--from-literal=c=d"],
    ["create", "configmap", "made"],
    ["create", "configmap", "dry", "--dry-run=client", "-o", "yaml"],
    ["create", "configmap", "dry", "--dry-run=server"],
    ["create", "configmap", "files", "--from-file=one.yaml", "--from-file=other=one.yaml"],
    ["get", "cm", "files", "-o", "jsonpath={.data.other}"],
    ["create", "secret", "generic", "hidden", "--from-literal=a=b"],
    ["create", "serviceaccount", "robot"],
    ["create", "-f", "one.yaml"],
    ["create", "-f", "one.yaml"],
    ["create", "-f", "unknown-kind.yaml"],
    ["create", "-f", "invalid.yaml"],
    ["create", "-f", "missing.yaml"],
    ["delete", "-f", "one.yaml"],
    ["delete", "-f", "one.yaml"],
    ["delete", "-f", "one.yaml", "--ignore-not-found"],
    ["apply", "-f", "one.yaml"],
    ["apply", "-f", "one.yaml"],
    ["apply", "-f", "one.2.yaml"],
    ["get", "cm", "one", "-o", "jsonpath={.data}"],
    ["apply", "-f", "one.yaml", "--dry-run=client"],
    ["apply", "-f", "one.yaml", "--dry-run=server"],
    ["apply", "-f", "."],
    ["apply", "-f", "folder"],
    ["apply", "-f", "folder", "-R"],
    ["apply", "-f", "folder", "-R", "-o", "name"],
    ["apply", "-k", "kustom"],
    ["apply", "-f", "missing.yaml"],
    ["apply", "--server-side", "-f", "server.yaml"],
    ["diff", "-f", "server.yaml", "--server-side"],
    ["label", "cm", "one", "a=b"],
    ["label", "cm", "one", "a=b"],
    ["label", "cm", "one", "a=c"],
    ["label", "cm", "one", "a=c", "--overwrite"],
    ["label", "cm", "one", "nope-"],
    ["label", "cm", "one", "a-"],
    ["label", "cm", "one", "bad=a b"],
    ["label", "cm", "nope", "a=b"],
    ["label", "cm", "-l", "app=none", "a=b"],
    ["label", "cm", "one", "x=y", "--dry-run=client"],
    ["annotate", "cm", "one", "a=b"],
    ["annotate", "cm", "one", "a=c"],
    ["annotate", "cm", "one", "a=c", "--overwrite"],
    ["annotate", "cm", "one", "a-"],
    ["scale", "deploy", "web", "--replicas=3"],
    ["scale", "deploy/web", "--replicas=3", "--current-replicas=1"],
    ["scale", "cm/one", "--replicas=3"],
    ["scale", "deploy/nope", "--replicas=3"],
    ["patch", "deploy", "web", "-p", '{"spec":{"replicas":4}}'],
    ["patch", "deploy", "web", "-p", '{"spec":{"replicas":4}}'],
    ["patch", "deploy", "web", "--type=json", "-p", '[{"op":"replace","path":"/spec/replicas","value":5}]'],
    ["patch", "deploy", "web", "--type=json", "-p", '[{"op":"test","path":"/spec/replicas","value":9}]'],
    ["patch", "deploy", "web", "--type=merge", "-p", "spec: {replicas: 6}"],
    ["patch", "deploy", "web", "-p", '{"spec":{"replicas":"x"}}'],
    ["patch", "deploy", "web", "--subresource=scale", "--type=merge", "-p", '{"spec":{"replicas":7}}'],
    ["patch", "crew", "red", "--type=merge", "-p", '{"spec":{"size":"x"}}'],
    ["get", "deploy", "web", "-o", "jsonpath={.spec.replicas}"],
    ["wait", "cm/one", "--for=create", "--timeout=1s"],
    ["delete", "cm", "one", "--dry-run=client"],
    ["delete", "cm", "one", "--dry-run=server"],
    ["delete", "cm", "one", "nope"],
    ["delete", "cm", "one", "-o", "name"],
    ["delete", "cm", "-l", "app=none"],
    ["delete", "deploy", "web", "--cascade=orphan"],
    ["delete", "deploy,svc", "--all"],
    ["delete", "secret/hidden", "sa/robot"],
    ["delete", "cm"],
]

# What is generated from options: each first with `--dry-run=client -o yaml`, then for real. OWN is the program's namespace.
GENERATED = [
    ["create", "deployment", "one", "--image=nginx:1,busybox", "--replicas=3"],
    ["create", "deploy", "two", "--image=a.example.dev/x/nginx@sha256:0123", "--port=80", "--", "sleep", "--long", "1"],
    ["create", "deployment", "none"],
    ["create", "job", "command", "--image=busybox", "--", "date", "-u"],
    ["create", "service", "clusterip", "ip", "--tcp=80:8080", "--tcp=443"],
    ["create", "svc", "clusterip", "headless", "--clusterip=None"],
    ["create", "service", "clusterip", "bad", "--tcp=x"],
    ["create", "service", "nodeport", "node", "--tcp=80:http"],
    ["create", "service", "loadbalancer", "balanced", "--tcp=5678:8080"],
    ["create", "service", "externalname", "outside", "--external-name=example.dev"],
    ["create", "role", "reader", "--verb=get,list", "--verb=watch", "--resource=pods,deployments.apps/scale"],
    ["create", "role", "named", "--verb=get", "--resource=cm", "--resource-name=a", "--resource-name=b"],
    ["create", "role", "nothing", "--verb=get"],
    ["create", "rolebinding", "readers", "--role=reader", "--user=a", "--group=b", "--serviceaccount=OWN:robot"],
    ["create", "rolebinding", "both", "--clusterrole=view", "--role=reader"],
    ["create", "clusterrole", "OWN-urls", "--verb=get", "--non-resource-url=/healthz,/logs/*"],
    ["create", "clusterrole", "OWN-sum", "--aggregation-rule=rbac.example.dev/aggregate=true"],
    ["create", "clusterrolebinding", "OWN-binding", "--clusterrole=view", "--serviceaccount=OWN:robot"],
    ["create", "quota", "scoped", "--hard=pods=100,cpu=1", "--scopes=BestEffort,NotTerminating"],
    ["create", "ingress", "full", "--class=nginx", "--annotation=a=b", "--rule=a.dev/x*=web:http,tls=cert"],
    ["create", "ingress", "two", "--rule=a.dev/x=web:http", "--rule=b.dev/=api:80,tls"],
    ["create", "ingress", "default", "--default-backend=web:80"],
    ["create", "ingress", "bad", "--rule=nope"],
    ["create", "secret", "generic", "texts", "--from-literal=b=2", "--from-file=other=one.yaml", "--type=example.dev/x"],
    ["create", "configmap", "texts", "--from-literal=a=1", "--from-file=folder"],
    ["create", "namespace", "OWN-made"],
    ["create", "serviceaccount", "robot"],
]

APPLIES = [
    ["apply", "-f", "shop", "-l", "app=shop"],
    ["apply", "-f", "shop", "-l", "app=shop"],
    ["get", "cm,secret", "-l", "app in (shop,other)", "-o", "name"],
    ["apply", "-f", "shop/one.yaml", "--prune", "-l", "app=shop", "--prune-allowlist=core/v1/Secret", "--dry-run=client"],
    ["apply", "-f", "shop/one.yaml", "--prune", "-l", "app=shop", "--prune-allowlist=core/v1/ConfigMap", "--dry-run=server"],
    ["apply", "-f", "shop/one.yaml", "--prune", "-l", "app=shop", "--prune-allowlist=core/v1/ConfigMap"],
    ["get", "cm,secret", "-l", "app in (shop,other)", "-o", "name"],
    ["apply", "-f", "shop/one.yaml", "--prune", "-l", "app=shop"],
    ["get", "cm,secret", "-l", "app in (shop,other)", "-o", "name"],
    ["apply", "-f", "shop/one.yaml", "--prune"],
    ["apply"],
    ["apply", "--server-side", "-f", "conflict/first.yaml", "--field-manager=first"],
    ["apply", "--server-side", "-f", "conflict/second.yaml", "--field-manager=second"],
    ["get", "cm", "contested", "-o", "jsonpath={.data}"],
    ["diff", "--server-side", "-f", "conflict/second.yaml", "--field-manager=second", "--force-conflicts"],
    ["apply", "--server-side", "-f", "conflict/second.yaml", "--field-manager=second", "--force-conflicts"],
    ["get", "cm", "contested", "-o", "jsonpath={.data}"],
    ["apply", "-f", "conflict/second.yaml", "--force-conflicts"],
    ["apply", "-f", "one.yaml"],
    ["diff", "-f", "one.yaml"],
    ["diff", "-f", "one.2.yaml"],
    ["diff", "-f", "conflict/third.yaml"],
    ["diff", "-f", "missing.yaml"],
    ["diff", "-f", "unknown-kind.yaml"],
    ["diff", "-f", "invalid.yaml"],
    ["diff"],
    ["apply", "-f", "one.2.yaml", "--dry-run=server", "-o", "yaml"],
    ["apply", "-f", "strict/unknown.yaml"],
    ["create", "-f", "strict/unknown.yaml"],
    ["create", "-f", "strict/unknown.yaml", "--validate=warn"],
    ["create", "-f", "strict/unknown.yaml", "--validate=ignore"],
    ["apply", "-f", "strict/generated.yaml"],
]

SIDE = '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"busybox:2"}]}}}}'
NO_SIDE = '{"spec":{"template":{"spec":{"containers":[{"name":"side","$patch":"delete"},{"name":"new","image":"x"}]}}}}'
OPERATIONS = '[{"op":"add","path":"/metadata/labels/x","value":"y"},{"op":"remove","path":"/spec/template/spec/containers/0"}]'

# With what else is a patch to the server.
PATCHES = [
    ["patch", "deploy", "web", "--dry-run=client", "-o", "yaml", "-p", SIDE],
    ["patch", "deploy", "web", "--dry-run=client", "-o", "yaml", "-p", NO_SIDE],
    ["patch", "deploy", "web", "--dry-run=client", "-o", "yaml", "--type=merge", "-p", SIDE],
    ["patch", "deploy", "web", "--dry-run=client", "-o", "yaml", "--type=json", "-p", OPERATIONS],
    ["patch", "deploy", "web", "--dry-run=client", "--type=json", "-p", '[{"op":"remove","path":"/nope"}]'],
    ["patch", "deploy", "web", "--dry-run=client", "-p", "spec: {replicas: 3}"],
    ["patch", "deploy", "web", "--dry-run=server", "-o", "yaml", "-p", "spec: {replicas: 3}"],
    ["patch", "crew", "red", "--dry-run=client", "-o", "yaml", "-p", "spec: {size: 9}"],
    ["patch", "crew", "red", "--dry-run=client", "-o", "yaml", "--type=merge", "-p", "spec: {size: 9, members: [{name: z}]}"],
    ["patch", "deploy", "web", "--patch-file=patches/replicas.yaml"],
    ["patch", "deploy", "web", "--type=nope", "-p", "{}"],
    ["patch", "deploy", "web"],
    ["patch", "deploy", "nope", "-p", "{}"],
    ["patch", "cm", "settings", "-p", '{"metadata":{"name":"other"}}'],
    ["patch", "cm", "settings", "-p", '{"metadata":{"resourceVersion":"1"}}'],
    ["scale", "deploy", "web", "api", "--replicas=4"],
    ["scale", "deploy", "--all", "--replicas=1"],
    ["scale", "deploy", "-l", "app=web", "--replicas=2", "-o", "name"],
    ["scale", "deploy", "web", "--replicas=3", "--dry-run=client"],
    ["scale", "deploy", "web", "--replicas=3", "--dry-run=server"],
    ["scale", "deploy", "web", "--replicas=-2"],
    ["scale", "deploy", "web"],
    ["scale", "deploy/web", "--replicas=5", "--current-replicas=2"],
    ["get", "deploy", "-o", "jsonpath={.items[*].spec.replicas}"],
    ["label", "deploy,cm", "--all", "seen=yes"],
    ["label", "deploy", "--all", "seen-"],
    ["label", "deploy", "web"],
    ["annotate", "deploy", "web", "api", "a=b", "c=d"],
]

DELETES = [
    ["delete", "deploy", "web", "--cascade=nope"],
    ["delete", "deploy", "web", "--cascade=foreground", "--dry-run=server"],
    ["delete", "deploy", "web", "--cascade=foreground"],
    ["delete", "deploy", "api", "--cascade=background", "--wait=false"],
    ["create", "deployment", "again", "--image=x"],
    ["delete", "deploy/again", "--cascade=orphan"],
    ["delete", "cm,secret", "-l", "app=web", "--dry-run=client"],
    ["delete", "cm,secret", "-l", "app=web"],
    ["delete", "crew/red", "cm/nope", "svc/web"],
    ["delete", "nope", "x"],
    ["delete", "cm", "x", "--all"],
    ["delete", "cm", "x", "-l", "a=b"],
    ["delete", "cm", "--all", "-o", "name"],
    ["delete", "cm", "--field-selector", "metadata.name=none"],
    ["create", "cm", "now"],
    ["delete", "cm", "now", "--now"],
    ["delete"],
]

# The editor, and what it edits.
EDITS = [
    ("sed -i s/front/back/", ["edit", "cm", "settings"]),
    ("true", ["edit", "cm", "settings"]),
    ("false", ["edit", "cm", "settings"]),
    ("sed -i s/nothing/else/", ["edit", "cm/settings", "deploy/web"]),
    ("sed -i s/back/front/", ["edit", "cm/settings", "-o", "json"]),
    ("sed -i 's/replicas: .*/replicas: 3/'", ["edit", "deploy", "web", "api"]),
    ("true", ["edit", "cm", "nope"]),
    ("true", ["edit", "nope", "x"]),
    ("true", ["edit"]),
    ("sed -i 's/size: 3/size: x/'", ["edit", "crew", "red"]),
]

WITHOUT_NAMESPACE = [
    ["create", "configmap", "dry", "--from-literal=a=b", "--dry-run=client", "-o", "yaml"],
    ["create", "deployment", "dry", "--image=x", "--dry-run=client", "-o", "yaml"],
    ["create", "service", "nodeport", "dry", "--tcp=80", "--node-port=30123", "--dry-run=client", "-o", "yaml"],
    ["create", "role", "dry", "--verb=get", "--resource=pods", "--dry-run=client", "-o", "yaml"],
    ["create", "rolebinding", "dry", "--role=x", "--user=a", "--dry-run=client", "-o", "yaml"],
    ["create", "ingress", "dry", "--rule=a/b=c:80", "--dry-run=client", "-o", "yaml"],
    ["create", "-f", "one.yaml", "--dry-run=client", "-o", "yaml"],
    ["create", "configmap", "dry", "--dry-run=server", "-o", "jsonpath={.metadata.namespace}"],
]

# And how many lines show the objects that are there, on stdout.
WATCHES = [
    (["get", "deploy", "-w"], 3),
    (["get", "deploy", "-w", "-o", "name"], 2),
    (["get", "deploy", "web", "-w", "--show-labels"], 2),
    (["get", "cm", "settings", "-w", "-o", "jsonpath={.data.number}{'\\n'}"], 1),
    (["get", "cm", "settings", "-w", "-o", "yaml"], 20),
    (["get", "deploy", "-w", "-l", "app=web"], 2),
    (["get", "deploy", "-A", "-w", "--field-selector=metadata.name=api"], 2),
    (["get", "deploy,cm", "-w"], 1),
    (["get", "cm", "nope", "-w"], 1),
    (["events", "-w"], 4),
]

# Without a server.
ABSENT = [
    ["get", "cm"],
    ["create", "configmap", "x"],
    ["apply", "-f", "one.yaml"],
    ["delete", "cm", "x"],
    ["patch", "cm", "x", "-p", "{}"],
    ["api-resources"],
    ["explain", "pod"],
    ["events"],
    ["diff", "-f", "one.yaml"],
    ["edit", "cm", "x"],
    ["wait", "cm/x", "--for=delete"],
    ["get", "--raw", "/version"],
]

FILES = {
    "one.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: '1', b: '2'}\n",
    "one.2.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: '3'}\n",
    "unknown-kind.yaml": "apiVersion: nope.example.dev/v1\nkind: Nope\nmetadata: {name: x}\n",
    "invalid.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {replicas: -1}\n",
    "server.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: server}\ndata: {a: '1'}\n",
    "folder/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
    "folder/b.json": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}',
    "folder/sub/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
    "kustom/kustomization.yaml": "resources: [a.yaml, b.json]\n",
    "kustom/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ka}\n",
    "kustom/b.json": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kb"}}',
    "formats/names.jsonpath": "{range .items[*]}{.metadata.name}{'\\n'}{end}",
    "formats/columns.txt": "NAME            IMAGES\n.metadata.name  .spec.template.spec.containers[*].image\n",
    "shop/one.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop, labels: {app: shop}}\n",
    "shop/two.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stall, labels: {app: shop}}\n",
    "shop/three.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: till, labels: {app: shop}}\n",
    "shop/other.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, labels: {app: other}}\n",
    "conflict/first.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: contested}\ndata: {a: '1', b: '1'}\n",
    "conflict/second.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: contested}\ndata: {a: '2', b: '2'}\n",
    "conflict/third.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: third}\ndata: {a: '2'}\n",
    "strict/unknown.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: strict, nope: x}\nother: 1\n",
    "strict/generated.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: some-}\n",
    "patches/replicas.yaml": "spec:\n  replicas: 8\n",
}

# Why commands differ that many have in common.
PARSER = "arguments are parsed by another library, which has words of its own"
HINT = "the hint"
REFUSED = "kubectl shows Go's error, with the path"
APPLIED = "no annotation with what was applied last: who owns a field is in metadata.managedFields"

# Where the outputs differ on purpose, and why. The rest of the comparison still holds: exit codes are equal.
DIFFERENT = {
    "get deploy -o nope": "kubectl also has go templates",
    "label cm one bad=a b": "kubectl checks values itself; here the server does",
    "label cm -l app=none a=b": "kubectl is silent about finding nothing",
    "delete cm": HINT,
    "events -o name": "kubectl prints an empty line",
    "get deploy -o custom-columns-file=formats/columns.txt --no-headers": "kubectl ignores --no-headers for files",
    "get cm --nope": PARSER,
    "nope": PARSER,
    "api-resources --nope": PARSER,
    "wait cm/settings": PARSER,
    "create deployment none": PARSER,
    "create deployment none --dry-run=client -o yaml": PARSER,
    "apply -f shop/one.yaml --prune": PARSER,
    "apply -f conflict/second.yaml --force-conflicts": PARSER,
    "patch deploy web": PARSER,
    "patch deploy web --type=nope -p {}": PARSER,
    "scale deploy web": PARSER,
    "delete deploy web --cascade=nope": PARSER,
    "get": HINT,
    "delete": HINT,
    "label deploy web": HINT,
    "wait cm/settings --for=nope": HINT,
    "create service clusterip bad --tcp=x": HINT,
    "create service clusterip bad --tcp=x --dry-run=client -o yaml": HINT,
    "apply -f shop/one.yaml --prune -l app=shop": "kubectl warns of its own future, and of Endpoints, which nobody asked for",
    "apply --server-side -f conflict/second.yaml --field-manager=second": "the advice is shorter",
    "diff -f one.2.yaml": APPLIED,
    "apply -f one.2.yaml --dry-run=server -o yaml": APPLIED,
    "patch deploy web --dry-run=client -p spec: {replicas: 3}": "kubectl does not say that it was a dry run",
    "apply -f strict/unknown.yaml": "every apply is one by the server, which has an error of its own for this",
    "KUBE_EDITOR=false edit cm settings": HINT,
    "KUBE_EDITOR=true edit": HINT,
    "KUBE_EDITOR=sed -i s/nothing/else/ edit cm/settings deploy/web": "an editor for each object, not one for all",
    "KUBE_EDITOR=sed -i 's/size: 3/size: x/' edit crew red": "kubectl opens the editor again",
    "create configmap x --kubeconfig absent/config": REFUSED,
    "apply -f one.yaml --kubeconfig absent/config": REFUSED,
    "diff -f one.yaml --kubeconfig absent/config": REFUSED,
    "events -w": "the oldest first",
}
