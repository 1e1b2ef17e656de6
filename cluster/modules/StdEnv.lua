help([[The environment everybody starts with.]])
whatis("Name: StdEnv")
whatis("Description: standard environment")
add_property("lmod", "sticky")
