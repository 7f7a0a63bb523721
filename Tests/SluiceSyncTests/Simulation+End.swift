import SluiceCore
import SluiceReplica
import SluiceSync

/// What must hold once everything has settled.
extension Simulation {
    var problems: [Problem] {
        var problems = (gateway.violations + gateway.outside).map { Problem(promise: .noStall, what: $0) }
        func check(_ promise: Promise, _ isTrue: Bool, _ what: @autoclosure () -> String) {
            if !isTrue { problems.append(Problem(promise: promise, what: what())) }
        }
        let repeated = gateway.effects.filter { $0.value != 1 }
        check(.exactlyOnce, repeated.isEmpty, "a changeset took effect twice: \(repeated)")
        check(
            .exactlyOnce, gateway.readings.count == Int(nextReading - 1), "\(gateway.readings.count) of \(nextReading - 1) readings arrived"
        )
        check(.exactlyOnce, gateway.readings.values.allSatisfy { $0 == 1 }, "a reading arrived twice")
        let counter = gateway.items[Simulation.counter]
        check(.exactlyOnce, counter?.count == added, "\(String(describing: counter)), not \(added)")
        let tags = gateway.items[Simulation.list]?.tags ?? []
        let kept = clients.reduce(into: Set()) { $0.formUnion($1.inserted) }.subtracting(clients.flatMap(\.removed))
        check(.exactlyOnce, Set(tags) == kept && tags.count == kept.count, "the list has \(tags), not \(kept.sorted())")
        for (index, client) in clients.enumerated() {
            problems += self.problems(of: client).map { Problem(promise: $0.promise, what: "client \(index): \($0.what)") }
        }
        return problems
    }

    private func problems(of client: Client) -> [Problem] {
        var problems = client.problems
        func check(_ promise: Promise, _ isTrue: Bool, _ what: @autoclosure () -> String) {
            if !isTrue { problems.append(Problem(promise: promise, what: what())) }
        }
        let file = client.file
        let number = file.identity?.client.rawValue ?? 0
        check(.exactlyOnce, gateway.clients[number]?.changeset == file.changesets, "not all changesets arrived")
        for changeset in 1..<file.changesets + 1 {
            check(.exactlyOnce, gateway.effects["\(number)/\(changeset)"] == 1, "changeset \(changeset) did not take effect once")
        }
        let told = file.isRestored ? Set(file.told).sorted() : file.told
        check(.exactlyOnce, told == Array(1..<(gateway.clients[number]?.lastCompensation ?? 0) + 1), "told of \(file.told)")
        check(.exactlyOnce, gateway.clients[number]?.compensations.isEmpty == true, "a compensation is open")
        let active = file.sets.first { $0.version == file.applied.version }
        let stores = Set(active?.subscriptions.map(\.query) ?? [])
        let view = gateway.items.filter { stores.contains($0.value.store) }
        check(
            .convergence, file.shown == view,
            "shows \(file.shown.filter { view[$0.key] != $0.value }), not \(view.filter { file.shown[$0.key] != $0.value })")
        for set in file.sets where set.version > file.applied.version {
            if case .error = set.state { continue }
            check(.noStall, false, "set \(set.version) is neither active nor refused")
        }
        return problems
    }
}
