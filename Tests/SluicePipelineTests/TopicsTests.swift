import SluiceCore
import SluicePipeline
import Testing

@Suite struct `The topics of an app` {
    @Test func `are distinct, whatever its classes are called`() {
        let names = ["progress", "users", "ingest", "Progress", "Order", "progress_changes", "user_events"]
        for classes in [names, names.filter { $0 != "users" }] {
            let schema = Schema(
                classes.map { ObjectType(name: $0, properties: [Property(id: 1, name: "_id", type: .int)]) })
            let topics = Topics(app: "app", schema: schema)
            let all =
                classes.flatMap { [topics.changes(of: $0), topics.ingest(of: $0)] } + [topics.progress, topics.deadLetters]
                + [topics.userEvents].compactMap(\.self)
            #expect(Set(all).count == 2 * classes.count + 3, "\(all)")
        }
    }
}
