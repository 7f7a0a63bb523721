// One command of a device: TeamTasks DEVICE EMAIL list | add TITLE | draft TITLE | done TITLE | sync
import Foundation
import RealmSwift

let words = Array(CommandLine.arguments.dropFirst())
guard words.count >= 3 else { fatalError("usage: TeamTasks DEVICE EMAIL list | add TITLE | draft TITLE | done TITLE | sync") }
let (folder, email, command) = (URL(fileURLWithPath: words[0]), words[1], words[2])
let title = words.dropFirst(3).joined(separator: " ")

// 1. Log in. A device that is logged in needs no gateway to start.
let url = ProcessInfo.processInfo.environment["SLUICE_URL"] ?? "http://127.0.0.1:8090"
let app = App(id: "teams", configuration: AppConfiguration(baseURL: url, storageDirectory: folder))
let credentials = Credentials.emailPassword(email: email, password: "secret123")
let user = if let known = app.currentUser { known } else { try await app.login(credentials: credentials) }

// 2. Open the replica with two subscriptions. The roles decide which objects they bring.
var configuration = user.flexibleSyncConfiguration(initialSubscriptions: { subscriptions in
    subscriptions.append(QuerySubscription<Team>())
    subscriptions.append(QuerySubscription<TeamTask>())
})
configuration.objectTypes = [Team.self, TeamTask.self]
configuration.fileURL = folder.appendingPathComponent("tasks.realm")
let realm = try await Realm(configuration: configuration, downloadBeforeOpen: .once)
guard let session = realm.syncSession else { fatalError("The Realm is not synchronised.") }

// 3. Read and write the replica. Synchronisation happens beside it.
switch command {
case "list":
    try await session.wait(for: .download)
case "add":
    let id = try add()
    try await session.wait(for: .upload)
    try await session.wait(for: .download)
    realm.refresh()
    if realm.object(ofType: TeamTask.self, forPrimaryKey: id) == nil { print("The gateway undid the write.") }
case "draft":
    session.suspend()
    _ = try add()
    print("Written offline.")
case "done":
    try realm.write { realm.objects(TeamTask.self).where { $0.title == title }.forEach { $0.done = true } }
    try await session.wait(for: .upload)
default:
    try await session.wait(for: .upload)
    try await session.wait(for: .download)
}
realm.refresh()
for task in realm.objects(TeamTask.self).sorted(byKeyPath: "title") {
    print("[\(task.done ? "x" : " ")] \(task.title) (\(task.team?.name ?? "no team"))")
}

/// Adds a task of the team that the user sees.
@MainActor func add() throws -> UUID {
    let task = TeamTask()
    task._id = UUID()
    task.title = title
    task.team = realm.objects(Team.self).first
    try realm.write { realm.add(task) }
    return task._id
}
