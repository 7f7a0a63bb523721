// The calls of an app written for Flexible Sync at the top level of its program, as tutorials show them. That it compiles is the
// contract; it runs as far as that needs no server, and says what it sees, a line each.
//
// app-at-top-level FOLDER
//     a folder with a user who has logged in before
// app-at-top-level FOLDER URL APP EMAIL PASSWORD
//     the same with the server of an app, and then the calls that need one

import Foundation
import RealmSwift

class Task: Object {
    @Persisted(primaryKey: true) var _id: ObjectId
    @Persisted var taskName: String
    @Persisted var assignee: String?
    @Persisted var completed: Bool
    @Persisted var progressMinutes: Int
    @Persisted var dueDate: Date
}

class Team: Object {
    @Persisted(primaryKey: true) var _id: ObjectId
    @Persisted var teamName: String
    @Persisted var tasks: List<Task>
    @Persisted var members: List<String>
}

@globalActor actor Background: GlobalActor {
    static let shared = Background()
}

let arguments = CommandLine.arguments
let app = App(
    id: arguments.count > 3 ? arguments[3] : "tasks",
    configuration: AppConfiguration(
        baseURL: arguments.count > 2 ? arguments[2] : "http://127.0.0.1:9", storageDirectory: URL(fileURLWithPath: arguments[1])))
let user = if let known = app.currentUser { known } else { try await app.login(credentials: .anonymous) }

var flexSyncConfig = user.flexibleSyncConfiguration(
    initialSubscriptions: { subs in
        subs.append(QuerySubscription<Team> { $0.members.contains("Bob Smith") })
    }, rerunOnOpen: true)
flexSyncConfig.objectTypes = [Task.self, Team.self]

let realm = try await Realm(configuration: flexSyncConfig)
print("initial", realm.subscriptions.count)

let subscriptions = realm.subscriptions
subscriptions.update({
    subscriptions.append(
        QuerySubscription<Task>(name: "late") {
            $0.completed == false && $0.dueDate < Date.now
        })
    subscriptions.append(QuerySubscription<Team>(name: "teams"))
})
print("appended", subscriptions.count, subscriptions.state)

let found = subscriptions.first(
    ofType: Team.self,
    where: {
        $0.members.contains("Bob Smith")
    })
print("found", found == nil ? "none" : found?.name ?? "unnamed")
subscriptions.update(
    {
        if let late = subscriptions.first(named: "late") {
            late.updateQuery(toType: Task.self, where: { $0.progressMinutes >= 60 && $0.assignee == "Ann" })
        }
        subscriptions.remove(named: "nobody")
    },
    onComplete: { error in
        if let error { print("refused", error) }
    })

let results = try await realm.objects(Team.self).where { $0.teamName == "Documentation" }.subscribe(name: "docs", waitForSync: .never)
try realm.write {
    let team = Team()
    team.teamName = "Documentation"
    team.members.append("Bob Smith")
    team.tasks.append(Task(value: ["taskName": "Write", "progressMinutes": 90]))
    realm.add(team)
}
print("results", results.count, realm.objects(Task.self).where { $0.progressMinutes > 60 }.count)
results.unsubscribe()

@Background func count(_ configuration: Realm.Configuration) async throws -> Int {
    let realm = try await Realm(configuration: configuration, actor: Background.shared)
    return realm.objects(Team.self).count
}
print("elsewhere", try await count(flexSyncConfig))

let latest = realm.subscriptions
latest.update({ latest.removeAll(unnamedOnly: true) })
print("named", latest.count)
latest.update({ latest.removeAll(ofType: Team.self) })
print("tasks", latest.count)
latest.update({ latest.removeAll() })
print("none", realm.subscriptions.count)

@MainActor
func withSubscriptions(_ configuration: Realm.Configuration) async throws -> Realm {
    let realm = try await Realm(configuration: configuration)
    let subscriptions = realm.subscriptions
    let known = subscriptions.first(named: "all")
    try await subscriptions.update {
        if known != nil {
            known!.updateQuery(
                toType: Team.self,
                where: {
                    $0.teamName == "Documentation"
                })
        } else {
            subscriptions.append(QuerySubscription<Team>(name: "all"))
        }
        subscriptions.append(
            QuerySubscription<Task>(name: "done") {
                $0.completed == true && $0.progressMinutes > 120
            })
    }
    let done = subscriptions.first(named: "done")
    try await subscriptions.update {
        subscriptions.removeAll(ofType: Team.self)
        subscriptions.remove(done!)
    }
    try await subscriptions.update {
        subscriptions.removeAll()
    }
    return realm
}

@Background func documentation(_ configuration: Realm.Configuration) async throws -> Int {
    let realm = try await Realm(configuration: configuration, actor: Background.shared)
    let teams = try await realm.objects(Team.self)
        .where { $0.teamName == "Documentation" }
        .subscribe(name: "docs")
    return teams.count
}

if arguments.count > 5 {
    try await realm.syncSession?.wait(for: .upload)
    let user = try await app.login(credentials: .emailPassword(email: arguments[4], password: arguments[5]))
    var configuration = user.flexibleSyncConfiguration()
    configuration.objectTypes = [Task.self, Team.self]
    let realm = try await withSubscriptions(configuration)
    let tasks = try await realm.objects(Task.self)
        .where { $0.progressMinutes >= 60 }.subscribe()
    let teams = try await realm.objects(Team.self)
        .where { $0.members.contains("Bob Smith") }
        .subscribe(
            name: "bobs",
            waitForSync: .onCreation)
    print("subscribed", tasks.count, teams.count)
    tasks.unsubscribe()
    let here = try await Realm(configuration: configuration, actor: MainActor.shared)
    print("open", here.subscriptions.count, try await documentation(configuration))
}
