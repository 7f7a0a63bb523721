import SluiceCore
import SluiceReplica
import SluiceSync
import Testing

@Suite struct SimulationTests {
    static let seeds = (0..<60).map { _ in UInt64.random(in: .min ... .max) }

    @Test(arguments: seeds)
    func `whatever the network does, every replica ends as its view of the gateway and every write took effect once`(seed: UInt64) throws {
        var simulation = Simulation(seed: seed, clients: 3)
        for _ in 0..<1_500 { try simulation.step() }
        try simulation.settle()
        let gateway = simulation.gateway
        #expect(gateway.violations.isEmpty, "seed \(seed)")
        #expect(gateway.outside.isEmpty, "seed \(seed)")
        #expect(gateway.effects.values.allSatisfy { $0 == 1 }, "seed \(seed)")
        #expect(gateway.readings.count == Int(simulation.nextReading - 1), "seed \(seed)")
        #expect(gateway.readings.values.allSatisfy { $0 == 1 }, "seed \(seed)")
        for client in simulation.clients {
            #expect(client.problems.isEmpty, "seed \(seed)")
            let file = client.file
            let number = file.identity?.client.rawValue ?? 0
            #expect(gateway.clients[number]?.changeset == file.changesets, "seed \(seed)")
            #expect(
                (1...max(file.changesets, 1)).allSatisfy { file.changesets == 0 || gateway.effects["\(number)/\($0)"] == 1 }, "seed \(seed)"
            )
            #expect(file.told == Array(1..<(gateway.clients[number]?.lastCompensation ?? 0) + 1), "seed \(seed)")
            #expect(gateway.clients[number]?.compensations.isEmpty == true, "seed \(seed)")
            let active = file.sets.first { $0.version == file.applied.version }
            let stores = Set(active?.subscriptions.map(\.query) ?? [])
            #expect(file.shown == gateway.items.filter { stores.contains($0.value.store) }, "seed \(seed)")
            for set in file.sets where set.version > file.applied.version {
                #expect(client.refusedSets.contains(set.version), "seed \(seed)")
            }
        }
    }
}
