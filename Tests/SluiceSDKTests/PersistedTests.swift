import Foundation
import SluiceSDK
import Testing

@Suite struct PersistedTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// Sets every property; the same values for the same number.
    private func fill(_ every: Every, _ number: Int) {
        every.bool = true
        every.int = .min + number
        every.int8 = .max
        every.int16 = .min
        every.int32 = .max
        every.int64 = .max
        every.float = 0.5 + Float(number)
        every.double = 0.1
        every.string = "é\n\"\(number)"
        every.data = Data([0, 255, 1])
        every.date = Date(timeIntervalSinceReferenceDate: 712_345_678.123_456_7)
        every.objectId = ObjectId("0123456789abcdef01234567")
        every.uuid = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255))
        every.decimal = 12.50
        every.colour = .green
        every.optionalBool = false
        every.optionalInt = 0
        every.optionalFloat = .infinity
        every.optionalDouble = -.infinity
        every.optionalString = ""
        every.optionalData = Data()
        every.optionalDate = Date(timeIntervalSince1970: -1.5)
        every.optionalObjectId = every.objectId
        every.optionalUUID = every.uuid
        every.optionalDecimal = 7
        every.optionalColour = .red
        every.ints.append(objectsIn: [3, 1, 2])
        every.strings.append(objectsIn: ["b", "a"])
        every.optionalStrings.append(objectsIn: ["x", nil])
        every.dates.append(every.date)
    }

    private func expectFilled(_ every: Every, _ number: Int) {
        let model = Every()
        fill(model, number)
        #expect(every.bool == model.bool && every.int == model.int && every.int8 == model.int8)
        #expect(every.int16 == model.int16 && every.int32 == model.int32 && every.int64 == model.int64)
        #expect(every.float == model.float && every.double == model.double && every.string == model.string)
        #expect(every.data == model.data && every.date == model.date && every.objectId == model.objectId)
        #expect(every.uuid == model.uuid && every.decimal == model.decimal && every.colour == model.colour)
        #expect(every.optionalBool == false && every.optionalInt == 0 && every.optionalFloat == .infinity)
        #expect(every.optionalDouble == -.infinity && every.optionalString == "" && every.optionalData == Data())
        #expect(every.optionalDate == model.optionalDate && every.optionalObjectId == model.optionalObjectId)
        #expect(every.optionalUUID == model.optionalUUID && every.optionalDecimal == 7 && every.optionalColour == .red)
        #expect(Array(every.ints) == [3, 1, 2] && Array(every.strings) == ["b", "a"])
        #expect(Array(every.optionalStrings) == ["x", nil] && Array(every.dates) == [model.date])
    }

    @Test func `an unmanaged object holds its values`() {
        let every = Every()
        #expect(every.string == "initial")
        #expect(every.int == 0 && every.optionalInt == nil && every.ints.isEmpty && every.colour == .red)
        #expect(every.objectId == every.objectId)
        #expect(every.date == every.date)
        fill(every, 4)
        expectFilled(every, 4)
    }

    @Test func `every type comes back from the file`() throws {
        let realm = try Realm(configuration: folder.local)
        let every = Every()
        every._id = 1
        fill(every, 9)
        try realm.write { realm.add(every) }
        expectFilled(every, 9)
        let other = try #require(realm.object(ofType: Every.self, forPrimaryKey: 1))
        expectFilled(other, 9)
        #expect(other == every)
    }

    @Test func `a managed object takes every type`() throws {
        let realm = try Realm(configuration: folder.local)
        let every = try realm.write { realm.create(Every.self, value: ["_id": 2]) }
        #expect(every.string == "initial" && every.optionalColour == nil)
        try realm.write { fill(every, 5) }
        expectFilled(every, 5)
        try realm.write {
            every.optionalString = nil
            every.optionalDate = nil
            every.ints.remove(at: 1)
            every.ints[0] = 8
        }
        #expect(every.optionalString == nil && every.optionalDate == nil && Array(every.ints) == [8, 2])
    }

    @Test func `a generated key is the same before and after adding`() throws {
        let realm = try Realm(configuration: folder.local)
        let task = Task()
        let id = task._id
        try realm.write { realm.add(task) }
        #expect(task._id == id)
        #expect(realm.object(ofType: Task.self, forPrimaryKey: id)?._id == id)
    }

    @Test func `two accessors of one object see each other's changes`() throws {
        let realm = try Realm(configuration: folder.local)
        let first = try realm.write { realm.create(Task.self, value: ["taskName": "a"]) }
        let second = try #require(realm.objects(Task.self).first)
        try realm.write {
            first.taskName = "b"
            #expect(second.taskName == "b")
        }
        #expect(second.taskName == "b")
    }

    @Test func `links lead to objects and list of links to those on the device`() throws {
        let realm = try Realm(configuration: folder.local)
        let team = Team()
        team.teamName = "T"
        team.tasks.append(objectsIn: [Task(value: ["taskName": "one"]), Task(value: ["taskName": "two"])])
        try realm.write { realm.add(team) }
        #expect(team.tasks.map(\.taskName) == ["one", "two"])
        #expect(realm.objects(Task.self).count == 2)
        try realm.write { realm.delete(team.tasks[0]) }
        #expect(team.tasks.map(\.taskName) == ["two"])
        let every = Every(value: ["_id": 1])
        every.link = Every(value: ["_id": 2, "int": 7])
        try realm.write { realm.add(every) }
        #expect(every.link?.int == 7)
        try realm.write { every.link = nil }
        #expect(every.link == nil)
    }

    @Test func `a block that throws leaves nothing behind`() throws {
        let realm = try Realm(configuration: folder.local)
        let task = try realm.write { realm.create(Task.self, value: ["taskName": "kept"]) }
        #expect(throws: CancellationError.self) {
            try realm.write {
                task.taskName = "lost"
                throw CancellationError()
            }
        }
        #expect(task.taskName == "kept")
        #expect(!realm.isInWriteTransaction)
    }

    @Test func `a deleted object is invalidated`() throws {
        let realm = try Realm(configuration: folder.local)
        let task = try realm.write { realm.create(Task.self, value: ["taskName": "a"]) }
        try realm.write { realm.delete(task) }
        #expect(task.isInvalidated)
        #expect(realm.isEmpty)
    }

    @Test func `a deleted object goes on showing what it was last`() throws {
        let realm = try Realm(configuration: folder.local)
        let task = try realm.write { realm.create(Task.self, value: ["taskName": "a"]) }
        #expect(task.taskName == "a")
        try realm.write { realm.delete(task) }
        #expect(task.isInvalidated && task.taskName == "a" && task.description == "[invalidated object]")
    }

    @Test func `creating with update changes what is given and keeps the rest`() throws {
        let realm = try Realm(configuration: folder.local)
        try realm.write { _ = realm.create(Every.self, value: ["_id": 1, "int": 5, "string": "s"]) }
        try realm.write { _ = realm.create(Every.self, value: ["_id": 1, "int": 6], update: .modified) }
        let every = realm.object(ofType: Every.self, forPrimaryKey: 1)
        #expect(every?.int == 6 && every?.string == "s")
    }

    @Test func `a file is still there when it is opened again`() throws {
        do {
            let realm = try Realm(configuration: folder.local)
            try realm.write { _ = realm.create(Task.self, value: ["taskName": "kept"]) }
        }
        #expect(try Realm(configuration: folder.local).objects(Task.self).first?.taskName == "kept")
    }
}
